"""Reading of untrusted NumPy files: no code runs, and no archive expands without limit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from zipfile import ZipFile, is_zipfile

from ..errors import UsageError
from .regular_file import open_regular

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray]

_MOST_BYTES = 256 << 20  # the arrays of an archive may always take so many
_EXPANSION = 100  # beyond that, they may take so many times the size of the archive


def load(path: Path) -> Arrays:
    """The arrays of a file by name; that of a .npy file has the name "".

    Pickled objects are refused, since loading them runs code. UsageError where there is no file, or
    it does not hold plain arrays.
    """
    import numpy as np

    try:
        with open_regular(path) as stream:
            _check_expansion(stream)
            content = np.load(stream, allow_pickle=False)
            return {"": content} if isinstance(content, np.ndarray) else dict(content.items())
    except FileNotFoundError:
        hint = "numpy.save and numpy.savez write such files"
        raise UsageError("no such file", hint, path) from None
    except Exception as error:  # noqa: BLE001 - from Python's tokenizer, zip, or a huge shape
        raise UsageError(f"not a NumPy file of plain arrays ({error})", file=path) from None


def _check_expansion(stream: BinaryIO) -> None:
    """ValueError for an archive whose large arrays expand to over a hundred times its size."""
    if is_zipfile(stream):
        with ZipFile(stream) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > max(_MOST_BYTES, _EXPANSION * os.fstat(stream.fileno()).st_size):
            raise ValueError(f"it would expand to {size} bytes")
    stream.seek(0)
