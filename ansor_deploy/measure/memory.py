"""What a trial of a task takes of the memory of the machine that runs it."""

from ..codegen.kernels.signature import signature
from ..model.tasks import Task
from ..runtime.tensors import tensor_bytes
from ..target import Target

BEYOND, MOST_ROOM = 4, 1 << 27  # times the last cache, and bytes, that copies of weights may take


def room_for_copies(task: Task, target: Target) -> int:
    """Bytes for copies of weights: what the network reads between two runs of the task.

    What exceeds the last cache several times is as cold as it can be.
    """
    last = target.l3_bytes or target.l2_bytes * target.cores
    return min(task.reuse_distance, BEYOND * last, MOST_ROOM)


def memory_of_trials(task: Task, target: Target) -> int:
    """Bytes that the process takes at most that runs candidates (`runner.py`, `guarded.py`).

    Each tensor is there as it was made, guarded, and, unless it is a weight, a second time for
    every other call. Weights are packed for each candidate: poisoned, guarded, and kept.
    """
    spec = signature(task.mod)
    sizes = [tensor_bytes(*pair) for pair in zip(spec.shapes, spec.dtypes, strict=True)]
    weights = sum(sizes[at] for at in spec.weights)
    return 3 * sum(sizes) + 2 * weights + room_for_copies(task, target)
