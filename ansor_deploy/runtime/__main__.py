"""Run a library on arrays from files, or print its interface: `python3 -m` of this package."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ..errors import AnsorError, UsageError
from .model import Model, load


def main() -> None:
    """Run the command line; on errors it exits with a code of `errors.py`."""
    parser = argparse.ArgumentParser(description="Run a library once, or say what it takes.")
    parser.add_argument("library", type=Path, help="model.so, its manifest model.json beside it")
    parser.add_argument("inputs", nargs="*", metavar="NAME=FILE.npy", help="an input's array")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE.npz", help="for the outputs")
    parser.add_argument("--threads", type=int, default=0, help="0: as many as the target has cores")
    words = parser.parse_args()
    try:
        model = load(words.library, words.threads)
        lines = _ran(model, words.inputs, words.output) if words.inputs else _described(model)
        sys.stdout.writelines(f"{line}\n" for line in lines)
    except AnsorError as error:
        hint = f"\n  hint: {error.hint}" if error.hint else ""
        sys.stderr.write(f"error: {error}{hint}\n")
        sys.exit(error.exit_code)


def _described(model: Model) -> Iterable[str]:
    for one in model.interfaces:
        yield f"takes {one.takes}"
        yield f"gives {one.gives}"


def _ran(model: Model, inputs: Iterable[str], output: Path | None) -> Iterable[str]:
    outputs = model(**dict(map(_array, inputs)))
    if output is not None:
        with output.open("wb") as stream:  # a name without .npz stays as it is
            np.savez(stream, **outputs)
    return [f"{name}: {one.dtype}{list(one.shape)}" for name, one in outputs.items()]


def _array(word: str) -> tuple[str, np.ndarray]:
    name, _, file = word.partition("=")
    try:
        return name, np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"{word}: {error}", "give an array as NAME=FILE.npy") from error


if __name__ == "__main__":
    main()
