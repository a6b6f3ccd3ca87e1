"""Turn any error about a model into one that names the model and its node."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from ...errors import AnsorError, ModelError
from ...system.machine_fault import raise_if_fault
from ...system.words import last_line


@contextmanager
def blamed(what: str, hint: str) -> Iterator[None]:
    """Make a ModelError of whatever is raised in the block; our own errors stay as they are.

    what: the sentence that says what cannot be done.
    """
    try:
        yield
    except (AnsorError, MemoryError):
        raise
    except Exception as error:
        raise_if_fault(error)
        raise ModelError(f"{what}: {last_line(error)}", hint) from error


def importing(operator: str, node: str) -> AbstractContextManager[None]:
    """Name the node in whatever error is raised in the block."""
    return blamed(
        f"node '{node}': this use of {operator} cannot be imported",
        "simplify the model (onnxslim model.onnx simple.onnx), or replace the node",
    )
