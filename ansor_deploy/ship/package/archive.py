"""Pack a folder as an archive, whole or not at all; equal files give equal bytes."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import UsageError
from ...system.atomic_file import writing_whole

_GZIP_LEVEL, _ZSTD_LEVEL = 6, 10


def stem(path: Path) -> str:
    """An archive's name without its suffixes; UsageError where these are unknown, or all of it."""
    for suffix in _COMPRESSORS:
        if path.name.endswith(suffix) and (name := path.name.removesuffix(suffix)).strip("."):
            return name
    known = " or ".join(_COMPRESSORS)
    raise UsageError(
        f"{path.name} does not end in {known}, after a name",
        f"name the package so: -o {path.name.partition('.')[0] or 'model'}.tar.gz",
    )


def pack(folder: Path, archive: Path) -> None:
    """Write a folder's files, sorted, without times and owners; links become the files themselves.

    UsageError where the archive's suffix needs a package that is not installed; OSError where there
    is no space.
    """
    compressor = _COMPRESSORS[archive.name.removeprefix(stem(archive))]
    with (
        writing_whole(archive) as stream,
        compressor(stream) as packed,
        tarfile.open(
            fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT, dereference=True
        ) as made,
    ):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                made.add(path, str(path.relative_to(folder)), filter=_plain)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, 0, "", ""
    entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    return entry


def _gzip(stream: BinaryIO) -> Any:
    return gzip.GzipFile("", "wb", _GZIP_LEVEL, stream, mtime=0)


def _zstd(stream: BinaryIO) -> Any:
    return _zstandard().ZstdCompressor(level=_ZSTD_LEVEL).stream_writer(stream, closefd=False)


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise UsageError(
            "a package that ends in .tar.zst needs the package zstandard",
            "name it .tar.gz, or run: pip install 'ansor-deploy[zstd]'",
        ) from error
    return zstandard


_COMPRESSORS: dict[str, Callable[[BinaryIO], Any]] = {".tar.gz": _gzip, ".tar.zst": _zstd}
