"""How much memory a trial of a task takes on the machine that runs it."""

from ..codegen.kernels.signature import signature
from ..model.tasks import Task
from ..runtime.tensors import tensor_bytes
from ..target import Target

BEYOND = 4  # copies of weights take at most this many times the last cache
MOST_ROOM = 1 << 27  # most bytes of copies of weights


def room_for_copies(task: Task, target: Target) -> int:
    """Bytes for copies of weights: as much as the network reads between two runs of the task.

    More than BEYOND times the last cache makes weights no colder.
    """
    last = target.l3_bytes or target.l2_bytes * target.cores
    return min(task.reuse_distance, BEYOND * last, MOST_ROOM)


def memory_of_trials(task: Task, target: Target) -> int:
    """Most bytes of the process that runs candidates (`runner.py`, `guarded.py`).

    Each tensor exists as it was generated, guarded, and, unless it is a weight, a second time for
    every other call. Each candidate's packed weights exist poisoned, guarded, and as a copy.
    """
    spec = signature(task.mod)
    sizes = [tensor_bytes(*pair) for pair in zip(spec.shapes, spec.dtypes, strict=True)]
    weights = sum(sizes[at] for at in spec.weights)
    return 3 * sum(sizes) + 2 * weights + room_for_copies(task, target)
