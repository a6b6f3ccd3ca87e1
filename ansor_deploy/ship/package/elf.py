"""Read the versions of glibc that an ELF file requires, without loading it."""

import re
import struct
from collections.abc import Iterator
from pathlib import Path

from ...errors import AnsorError

_VERNEED = 0x6FFFFFFE  # SHT_GNU_verneed: versions of other libraries' symbols
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")
_SECTION = "<IIQQQQIIQQ"  # Elf64_Shdr
_NEEDED, _VERSION = "<HHIII", "<IHHII"  # Elf64_Verneed, Elf64_Vernaux


def needed_glibc(path: Path) -> tuple[int, int]:
    """The version of glibc that a 64-bit library requires; (0, 0) where it requires none.

    AnsorError if it is not a 64-bit library.
    """
    content = path.read_bytes()
    if content[:6] != b"\x7fELF\x02\x01":
        raise AnsorError("it is no 64-bit ELF file", file=path)
    try:
        found = [_GLIBC.fullmatch(name) for name in _needed_versions(content)]
    except (struct.error, IndexError, OverflowError, ValueError) as error:
        raise AnsorError(f"it is a damaged ELF file: {error}", file=path) from error
    return max(((int(one[1]), int(one[2])) for one in found if one), default=(0, 0))


def _needed_versions(content: bytes) -> Iterator[bytes]:
    """The names of all versions that are required of other libraries."""
    (start,) = struct.unpack_from("<Q", content, 40)
    size, count = struct.unpack_from("<HH", content, 58)
    sections = [struct.unpack_from(_SECTION, content, start + size * k) for k in range(count)]
    for _, kind, _, _, offset, _, link, libraries, _, _ in sections:
        if kind == _VERNEED:
            strings = sections[link][4]
            for at in _names(content, offset, libraries):
                yield content[strings + at : content.index(b"\0", strings + at)]


def _names(content: bytes, offset: int, libraries: int) -> Iterator[int]:
    """Offsets of the versions' names in the string table."""
    for _ in range(libraries):
        _, versions, _, first, onwards = struct.unpack_from(_NEEDED, content, offset)
        at = offset + first
        for _ in range(versions):
            _, _, _, name, step = struct.unpack_from(_VERSION, content, at)
            yield name
            if not step:
                break
            at += step
        if not onwards:
            break
        offset += onwards
