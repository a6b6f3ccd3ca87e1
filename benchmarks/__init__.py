"""The commands that print this project's figures: `python -m benchmarks NAME ...`."""
