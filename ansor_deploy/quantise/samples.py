"""Samples of a model's inputs: in one archive, or in a folder with a file for each sample.

    samples.npz     x: 100x3x224x224, where the model takes 1x3x224x224: a hundred samples
    samples/        0001.npz, 0002.npz: one sample each; of a model with one input also .npy

Arrays are named after the inputs. Every sample is checked before the first is used: a wrong one
would only make bad scales.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError, blaming
from ..system.digest import file_sha256
from ..system.plain_arrays import load
from ..system.words import size_text

if TYPE_CHECKING:
    import numpy as np

    Sample = dict[str, np.ndarray]

MOST_BYTES = 2 << 30  # of all samples, which are in memory at once
MOST_FILES = 10_000
_KINDS = (".npz", ".npy")
_HINT = (
    "save arrays named after the inputs: numpy.savez('samples.npz', NAME=array), whose first axis "
    "are the samples"
)


@dataclass(frozen=True)
class Input:
    """An input of a model. shape: None for an extent that is not fixed. dtype: NumPy's name."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.name} {_extents(self.shape)} {self.dtype}"


def sample_files(path: Path) -> list[Path]:
    """The files of samples: an archive, or those in a folder sorted by name; UsageError if none."""
    if not path.is_dir():
        return [path]
    files = sorted(one for one in path.iterdir() if one.suffix in _KINDS and one.is_file())
    if not files:
        raise UsageError("there is no .npz and no .npy file in this folder", _HINT, path)
    if len(files) > MOST_FILES:
        what = f"there are {len(files)} samples, and {MOST_FILES} at most are read"
        raise UsageError(what, "some hundred are enough: give a folder of these", path)
    return files


def samples_digest(files: Iterable[Path]) -> str:
    """SHA-256 over the contents of files, in their order; UsageError if one is not readable."""
    whole = sha256()
    for file in files:
        whole.update(bytes.fromhex(_sha256(file)))
    return whole.hexdigest()


def _sha256(file: Path) -> str:
    try:
        return file_sha256(file)
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        raise UsageError(what, "give an .npz file, or a folder of these", file) from error


def read_samples(path: Path, inputs: Sequence[Input]) -> list[Sample]:
    """All samples, each with an array for each input; UsageError says what is wrong with one."""
    samples: list[Sample] = []
    size = 0
    for file in sample_files(path):
        if path.is_dir():
            size += file.stat().st_size
            _check_size(size, path)
        with blaming(file):
            samples += _in_file(file, inputs, alone=path.is_dir())
        if not path.is_dir():
            _check_size(sum(array.nbytes for one in samples for array in one.values()), path)
    return samples


def _check_size(size: int, path: Path) -> None:
    if size > MOST_BYTES:
        what = f"the samples have more than {size_text(MOST_BYTES)}"
        raise UsageError(what, "give fewer: some hundred are enough", path)


def _in_file(file: Path, inputs: Sequence[Input], *, alone: bool) -> list[Sample]:
    """The samples of a file. alone: whether the file is one sample."""
    arrays = load(file)
    if set(arrays) == {""} and len(inputs) == 1:
        arrays = {inputs[0].name: arrays[""]}
    _check_names(arrays, inputs)
    parts = {one.name: list(_parts(arrays[one.name], one, alone=alone)) for one in inputs}
    counts = {name: len(found) for name, found in parts.items()}
    if len(set(counts.values())) > 1:
        said = ", ".join(f"{number} of {name}" for name, number in counts.items())
        raise UsageError(f"the inputs have different numbers of samples: {said}", _HINT)
    if not max(counts.values(), default=0):
        raise UsageError("there is no sample in it", _HINT)
    return [dict(zip(parts, one, strict=True)) for one in zip(*parts.values(), strict=True)]


def _check_names(arrays: Iterable[str], inputs: Sequence[Input]) -> None:
    names, wanted = set(arrays), {one.name for one in inputs}
    takes = f"the model takes: {'; '.join(map(str, inputs)) or 'nothing'}"
    if others := sorted(names - wanted):
        named = f"no input {others[0]!r}" if others[0] else "several inputs, each with a name"
        raise UsageError(f"the model has {named}", takes)
    if missing := sorted(wanted - names):
        raise UsageError(f"there is no array of the input {missing[0]!r}", takes)


def _parts(array: np.ndarray, one: Input, *, alone: bool) -> Iterator[np.ndarray]:
    """The samples in an array of an input."""
    import numpy as np

    if array.dtype != one.dtype:
        hint = f"convert it first, as with array.astype('{one.dtype}')"
        raise UsageError(f"the array of {one} is of {array.dtype}", hint)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        hint = "leave these samples out: no scale can represent them"
        raise UsageError(f"the array of {one.name!r} has NaN or infinities in it", hint)
    made = _split(array, one, alone=alone)
    if made is None:
        given = _extents(array.shape)
        whole = "" if alone else ", with or without an axis of samples before it"
        raise UsageError(f"the array of {one.name!r} is {given}", f"the model takes {one}{whole}")
    yield from made


def _split(array: np.ndarray, one: Input, *, alone: bool) -> Iterable[np.ndarray] | None:
    """The samples in an array; None if its shape does not fit the input.

    It may be one sample without its batch of one, samples along an axis of their own, or batches
    one after the other.
    """
    shape, rank = array.shape, len(one.shape)
    batch = one.shape[0] if one.shape else None
    if alone:
        if batch in (1, None) and rank and _fits(shape, one.shape[1:]):
            return [array[None]]
        return [array] if _fits(shape, one.shape) else None
    if len(shape) == rank + 1 and _fits(shape[1:], one.shape):
        return list(array)
    if rank and len(shape) == rank and _fits(shape[1:], one.shape[1:]):
        step = batch or 1
        cuts = range(0, shape[0], step)
        return None if shape[0] % step else [array[at : at + step] for at in cuts]
    return None


def _fits(shape: Sequence[int], wanted: Sequence[int | None]) -> bool:
    return len(shape) == len(wanted) and all(
        extent > 0 and extent == (fixed or extent)
        for extent, fixed in zip(shape, wanted, strict=True)
    )


def _extents(shape: Iterable[int | None]) -> str:
    return "x".join("?" if extent is None else str(extent) for extent in shape) or "scalar"
