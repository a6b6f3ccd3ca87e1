"""Load the bytes of an ONNX file's tensors, and never more than are there."""

import math
import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from stat import S_ISREG

from onnx import TensorProto, helper

from ...errors import ModelError
from ...system.host import memory_bytes
from ...system.regular_file import open_regular
from .file_digest import unreadable

_BELOW_A_BYTE = re.compile(r"(?:U?INT|FLOAT)([24])(?:E\dM\d)?")  # names of ONNX's element types
_NUMBER = re.compile("[0-9]{1,19}")  # of bytes, in 64 bits
_SAVE = "save the model and its data again."
_SHARED = 4  # how often each byte of a data file may be read
_COMPLEX = (TensorProto.COMPLEX64, TensorProto.COMPLEX128)
_REPEATED = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")


def byte_size(tensor: TensorProto) -> int | None:
    """Bytes of the tensor's raw form, from its type and dimensions; None for strings.

    ModelError for a negative dimension, or a type that ONNX does not have.
    """
    dims = tuple(tensor.dims)
    if min(dims, default=0) < 0:
        fault = f"has a negative dimension: {dims}"
        raise _damaged(tensor, fault, "export the model again.")
    if tensor.data_type == TensorProto.STRING:
        return None
    try:
        bits = _bits(tensor.data_type)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"tensor '{tensor.name}' has an unknown element type ({tensor.data_type})",
            "Export the model with an ONNX version that this tool's onnx package knows.",
        ) from error
    return (math.prod(dims) * bits + 7) // 8


@cache
def _bits(data_type: int) -> int:
    small = _BELOW_A_BYTE.fullmatch(TensorProto.DataType.Name(data_type))
    return int(small[1]) if small else 8 * int(helper.tensor_dtype_to_np_dtype(data_type).itemsize)


def check_size(tensor: TensorProto) -> None:
    """Check that a tensor's data fills its shape exactly: a short one would be read past its end.

    ModelError if it holds more or fewer elements than its dimensions say.
    """
    expected = byte_size(tensor)
    if expected is None:
        return
    held = len(tensor.raw_data)
    if elements := sum(len(getattr(tensor, field)) for field in _REPEATED):
        # Complex numbers take two elements each; a byte of types smaller than a byte is one
        # element.
        pair = 2 if tensor.data_type in _COMPLEX else 1
        held = elements * max(1, _bits(tensor.data_type) // 8) // pair
    if held != expected:
        fault = f"of shape {tuple(tensor.dims)} needs {expected} bytes, the file holds {held}"
        raise _damaged(tensor, fault, "export or download the model again.")


def is_external(tensor: TensorProto) -> bool:
    """Whether the tensor's bytes are in a file of their own."""
    return bool(tensor.data_location == TensorProto.EXTERNAL)


def external_file(tensor: TensorProto, model: Path) -> Path:
    """The data file that a tensor names, inside the model's folder.

    If the model is a link, its data may be a link into the folder of the link's target: build
    systems copy folders so. ModelError if it names no file, or the file is missing, not a regular
    one, or outside the folder.
    """
    folder = model.parent
    location = _entries(tensor).get("location", "")
    where = f"tensor '{tensor.name}': external data file {location!r}"
    path = folder / location
    if not location or "\0" in location or not _lies_beside(path, model):
        raise ModelError(
            f"{where} is outside the model's folder {folder}",
            "External data must lie beside the model or below it: save the model again so.",
        )
    try:
        if not S_ISREG(path.stat().st_mode):
            raise ModelError(f"{where} is not a file", "Copy the data file beside the model.")
    except OSError as error:
        raise ModelError(
            f"{where} is missing from {folder}",
            "Copy it there too: the model's weights are stored in it.",
        ) from error
    return path


def _lies_beside(path: Path, model: Path) -> bool:
    """Whether a file is below the model's folder, once '..' and all links are resolved."""
    roots = {Path(os.path.realpath(model.parent)), Path(os.path.realpath(model)).parent}
    return not roots.isdisjoint(Path(os.path.realpath(path)).parents)


def check_external(named: Iterable[TensorProto], files: Iterable[Path]) -> None:
    """ModelError if tensors would take more than their files hold, or this machine has.

    Tensors may share bytes of a file, but not so many that a small file fills the memory.
    """
    needed = sum(byte_size(tensor) or 0 for tensor in named)
    held = sum(file.stat().st_size for file in files)
    if needed > _SHARED * held or needed > memory_bytes():
        fault = f"its external tensors are {needed} bytes; their files hold {held}"
        raise ModelError(fault, f"This machine's memory has {memory_bytes()}. {_SAVE.capitalize()}")


def load_external(tensor: TensorProto, path: Path) -> None:
    """Read a tensor's bytes from its file into the tensor.

    ModelError if the file ends before the tensor does, or the entry makes no sense.
    """
    needed, shape = byte_size(tensor), tuple(tensor.dims)
    offset, length = _number(tensor, "offset", 0), _number(tensor, "length", needed or 0)
    if needed is None or length != needed:
        fault = f"of shape {shape} needs {needed} bytes, its external data declares {length}"
        raise _damaged(tensor, fault, _SAVE)
    try:
        held = path.stat().st_size
        if offset + needed > held:
            raise ModelError(
                f"tensor '{tensor.name}' needs bytes {offset} to {offset + needed} of"
                f" {path}, which has {held}",
                "The data file was cut short, or belongs to another model: copy it again.",
            )
        with open_regular(path) as file:
            file.seek(offset)
            tensor.raw_data = file.read(needed)
    except OSError as error:
        raise unreadable(path, error) from error
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def _entries(tensor: TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def _number(tensor: TensorProto, key: str, default: int) -> int:
    text = _entries(tensor).get(key, str(default))
    if not _NUMBER.fullmatch(text):
        raise _damaged(tensor, f"has external data with {key} '{text}'", _SAVE)
    return int(text)


def _damaged(tensor: TensorProto, fault: str, remedy: str) -> ModelError:
    return ModelError(f"tensor '{tensor.name}' {fault}", f"The file is damaged: {remedy}")
