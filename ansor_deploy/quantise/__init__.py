"""Quantise a float model to bytes, by ONNX Runtime's quantiser and the user's samples."""
