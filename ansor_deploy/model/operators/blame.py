"""What goes wrong with a model is said of it, and of its node: no code foresees all they say."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from ...errors import AnsorError, ModelError
from ...system.machine_fault import raise_if_fault


@contextmanager
def blamed(what: str, hint: str) -> Iterator[None]:
    """Make a ModelError of whatever is raised meanwhile; errors of ours stay.

    what: cannot be done.
    """
    try:
        yield
    except (AnsorError, MemoryError):
        raise
    except Exception as error:
        raise_if_fault(error)
        raise ModelError(f"{what}: {last_line(error)}", hint) from error


def importing(operator: str, node: str) -> AbstractContextManager[None]:
    """Name the node in whatever is raised meanwhile."""
    return blamed(
        f"node '{node}': this use of {operator} cannot be imported",
        "simplify the model (onnxslim model.onnx simple.onnx), or replace the node",
    )


def last_line(error: Exception) -> str:
    """What an error says in the end, TVM's being long; its type if it says nothing."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
