"""What goes wrong with a node is said of the node: models say things that no code foresees."""

from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import AnsorError, ModelError
from ...system.machine_fault import heed


@contextmanager
def importing(operator: str, node: str) -> Iterator[None]:
    """Name the node in whatever is raised meanwhile, as a ModelError; errors of ours stay."""
    try:
        yield
    except (AnsorError, MemoryError):
        raise
    except Exception as error:
        heed(error)
        raise ModelError(
            f"node '{node}': this use of {operator} cannot be imported: {last_line(error)}",
            "simplify the model (onnxslim model.onnx simple.onnx), or replace the node",
        ) from error


def last_line(error: Exception) -> str:
    """What an error says in the end, TVM's being long; its type if it says nothing."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
