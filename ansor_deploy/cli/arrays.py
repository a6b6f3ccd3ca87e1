"""Tensors in NumPy's files: what `run` and `verify` read, and `run` writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UsageError
from ..registry.title import shape_text
from ..system.atomic_file import write_whole
from ..system.plain_arrays import load
from ..system.printable import printable

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray]


input_option = click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE.npy",
    help="The array of an input, or FILE.npz with those of several. Repeatable.",
)


def read_inputs(words: Iterable[str], interfaces: Sequence[Any]) -> Arrays:
    """The arrays of "name=file.npy" and "file.npz", checked against the artifact's inputs.

    With several interfaces they are not checked here: the artifact checks them when it runs.
    """
    arrays: Arrays = {}
    for word in words:
        arrays.update(read_word(word))
    if len(interfaces) == 1:
        check_inputs(arrays, interfaces[0].inputs)
    return arrays


def read_word(word: str) -> Arrays:
    """The arrays that one `--input` names.

    UsageError where it names no array, or its file holds several without names.
    """
    if word.endswith(".npz"):
        return load(Path(word))
    name, equals, path = word.partition("=")
    if not equals or not path.endswith(".npy"):
        hint = "write it like data=image.npy, or inputs.npz"
        raise UsageError(f"--input {word!r} names no array", hint)
    arrays = load(Path(path))
    if set(arrays) != {""}:
        hint = "rename it .npz and give it without NAME="
        raise UsageError(f"{path}: holds several arrays", hint)
    return {name: arrays[""]}


def check_inputs(arrays: Arrays, expected: Iterable[Any]) -> None:
    """UsageError where names, shapes or dtypes are not those that the artifact was compiled for."""
    wanted = {tensor.name: f"{tensor.name} {shape_and_dtype(tensor)}" for tensor in expected}
    if others := [name for name in arrays if name not in wanted]:
        hint = f"it takes: {'; '.join(wanted.values())}"
        raise UsageError(f"the library has no input {others[0]!r}", hint)
    missing = [text for name, text in wanted.items() if name not in arrays]
    if missing:
        hint = "give it with --input NAME=FILE.npy, or several in one FILE.npz"
        raise UsageError(f"missing input: {'; '.join(missing)}", hint)
    for name, array in arrays.items():
        if wanted[name] != f"{name} {(given := shape_and_dtype(array))}":
            dtype = wanted[name].rpartition(" ")[2]
            hint = f"convert it first, as with array.astype('{dtype}').reshape(...)"
            raise UsageError(f"input {wanted[name]} was given as {given}", hint)


def shape_and_dtype(array: Any) -> str:
    """What must agree between an array and an input, such as "1x3x224x224 float32"."""
    return f"{shape_text(array.shape)} {array.dtype}"


def write_arrays(arrays: Arrays, file: Path | None, folder: Path | None) -> list[Path]:
    """Write all arrays into one .npz file, or each into a .npy file of a folder; return the paths.

    In file names, slashes of tensor names become underscores; control characters are spelled out.
    """
    import numpy as np

    saves = {file: partial(np.savez, **arrays)} if file else {}
    if folder:
        for name, array in arrays.items():
            saves[folder / f"{printable(name.replace('/', '_'))}.npy"] = partial(np.save, arr=array)
    for path, save in saves.items():
        buffer = BytesIO()
        save(buffer)
        write_whole(path, buffer.getvalue())
    return list(saves)
