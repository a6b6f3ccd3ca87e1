"""The outputs of a build: a library, and the files beside it that describe it."""
