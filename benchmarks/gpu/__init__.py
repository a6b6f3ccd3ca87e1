"""Libraries for a GPU on a machine that has one, for minutes: a folder goes there, a file back."""
