"""A float model made one of bytes, by ONNX Runtime's quantiser and the user's samples."""
