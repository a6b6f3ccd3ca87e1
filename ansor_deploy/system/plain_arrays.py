"""Arrays of NumPy's files that somebody wrote: nothing in them is run or expands without end."""

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

_MOST_BYTES, _EXPANSION = 256 << 20, 100  # of arrays in an archive, and by which factor


def load(path: Path) -> Arrays:
    """The arrays of a file by name, "" in a .npy file.

    Pickled objects are refused, since reading them runs code. UsageError where the file is not
    there, or not one of plain arrays.
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
    except Exception as error:  # noqa: BLE001 - of Python's tokenizer, of zip, of a huge shape
        raise UsageError(f"not a NumPy file of plain arrays ({error})", file=path) from None


def _check_expansion(stream: BinaryIO) -> None:
    """ValueError for an archive of large arrays that is packed to less than a hundredth."""
    if is_zipfile(stream):
        with ZipFile(stream) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > max(_MOST_BYTES, _EXPANSION * os.fstat(stream.fileno()).st_size):
            raise ValueError(f"it would expand to {size} bytes")
    stream.seek(0)
