"""Write a model to a folder: a file, and a second one for the weights of a large model.

Protobuf has a limit of 2 GiB, and computed models may be larger: their weights lie beside them, as
ONNX's external data.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from onnx import ModelProto, TensorProto

from .skeleton import with_initializers
from .tensor_data import byte_size

_MOST = 1 << 30  # bytes of weights in a model's own file; as much again is left for all else
_APART = 4096  # bytes; smaller tensors stay in the model's file. Larger ones begin at a whole page
_WEIGHTS = "weights"


def is_large(proto: ModelProto) -> bool:
    """Whether a model's weights belong into a file of their own."""
    return sum(byte_size(tensor) or 0 for tensor in proto.graph.initializer) > _MOST


def write_model(proto: ModelProto, folder: Path) -> Path:
    """The file of a model, written to this folder; OSError where there is no room."""
    path = folder / "model.onnx"
    if is_large(proto):
        with (folder / _WEIGHTS).open("wb") as weights:
            proto = with_initializers(proto, _apart(proto, weights))
    path.write_bytes(proto.SerializeToString())
    return path


def _apart(proto: ModelProto, weights: BinaryIO) -> Iterator[TensorProto]:
    """The initializers; of large ones, the data is written to a file."""
    for tensor in proto.graph.initializer:
        size = len(tensor.raw_data)
        if size < _APART:
            yield tensor
            continue
        begin = weights.seek(-(-weights.tell() // _APART) * _APART)
        weights.write(tensor.raw_data)
        made = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        made.data_location = TensorProto.EXTERNAL
        for key, value in (("location", _WEIGHTS), ("offset", begin), ("length", size)):
            made.external_data.add(key=key, value=str(value))
        yield made
