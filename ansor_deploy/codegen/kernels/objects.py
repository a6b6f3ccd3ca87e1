"""Kernels to object files, each by itself: side by side in child processes, and within limits.

What a kernel's compilation costs is known only afterwards, and LLVM can neither be stopped from
within nor survives the end of memory. So each runs in a warm child process that can be killed.
The processes are started at need, and are kept for the next build of this process.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from ..._tvm import tvm
from ...errors import MachineError
from ...system import fence
from ...system.digest import sha256
from ...system.jobserver import threads
from ...system.worker import Worker, WorkerFailure
from ...target import Target
from .object_cache import ObjectCache

PROCESSOR_SECONDS = 30.0  # of a kernel; those of the rules take one at most
WALL_SECONDS = 10 * PROCESSOR_SECONDS  # a machine may be that busy, and a process may hang
KERNELS_PER_WORKER = 8  # a process takes as long to start as to compile so many small ones
_COMPILES = "ansor_deploy.codegen.kernels.kernel"
_ENV = {"TVM_NUM_THREADS": "1", fence.VARIABLE: os.devnull}  # what they make is in memory
_spare: list[Worker] = []


# Attribute of a function that is no part of what it computes: the key of its task's workload.
TASK = "ansor.task"


@dataclass(frozen=True)
class Kernel:
    """A scheduled program, and the symbol of its code. program: a PrimFunc as TVM's JSON."""

    symbol: str
    program: str

    @classmethod
    def of(cls, func: Any, code: int = 0) -> Kernel:
        """The kernel of a PrimFunc, called after the digest of its program.

        code: the number of the library's code that it belongs to.
        """
        program = tvm.ir.save_json(func.without_attr(TASK).without_attr("global_symbol"))
        return cls(f"kernel_{sha256(program)[:16]}{f'_{code}' if code else ''}", program)


@dataclass(frozen=True)
class Refusal:
    """Why a kernel has no object file."""

    reason: str


def compile_kernels(
    kernels: Iterable[Kernel],
    target: Target,
    progress: Callable[[int, int], None] = lambda done, total: None,
    warn: Callable[[str], None] = lambda message: None,
) -> dict[str, bytes | Refusal]:
    """The object file of each kernel by its symbol, or why there is none.

    progress: is called with the numbers of kernels that are done and that there are. warn: with a
    sentence where they cannot be kept for the next build. MachineError where this machine fails.
    """
    cache = ObjectCache(target, warn)
    made: dict[str, bytes | Refusal] = {}
    for kernel in (unique := set(kernels)):
        if (kept := cache.get(kernel.symbol, kernel.program)) is not None:
            made[kernel.symbol] = kept
    queue = [kernel for kernel in unique if kernel.symbol not in made]
    with closing(_compiled(queue, target)) as results:
        for kernel, result in results:
            made[kernel.symbol] = result
            if isinstance(result, bytes):
                cache.put(kernel.symbol, kernel.program, result)
            progress(len(made), len(unique))
    cache.trim()
    return made


def _compiled(
    kernels: Iterable[Kernel], target: Target
) -> Generator[tuple[Kernel, bytes | Refusal]]:
    """Object files as they come; the largest programs first, which may take longest."""
    queue = sorted(kernels, key=lambda one: (-len(one.program), one.symbol))
    words = {"target": json.dumps(target.to_json()), "seconds": PROCESSOR_SECONDS}
    if not queue:
        return
    with _workers(len(queue)) as workers:
        idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in workers:
            idle.put(worker)
        yield from _side_by_side(queue, workers, lambda one: _compile(one, words, idle))


def _side_by_side(
    kernels: Sequence[Kernel], workers: Sequence[Worker], work: Callable[[Kernel], Any]
) -> Iterator[tuple[Kernel, Any]]:
    """What the work gives for each kernel, as it comes."""
    executor = ThreadPoolExecutor(len(workers), "ansor-deploy-compile")
    try:
        begun = {executor.submit(work, kernel): kernel for kernel in kernels}
        for future in as_completed(begun):
            yield begun[future], future.result()
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def _compile(kernel: Kernel, words: dict[str, Any], idle: SimpleQueue[Worker]) -> bytes | Refusal:
    worker = idle.get()
    payload = {**words, "symbol": kernel.symbol, "program": kernel.program}
    try:
        return base64.b64decode(worker.call(f"{_COMPILES}:compile_kernel", payload, WALL_SECONDS))
    except WorkerFailure as failure:
        if failure.kind == "timeout":
            raise MachineError(
                f"too busy: a kernel had less than {PROCESSOR_SECONDS:.0f} s of a processor in "
                f"{WALL_SECONDS:.0f} s",
                "end other programs; the same command resumes",
            ) from failure
        return Refusal(_reason(failure))
    finally:
        idle.put(worker)


def _reason(failure: WorkerFailure) -> str:
    if failure.message.startswith("SIGXCPU"):
        return f"it takes the compiler more than {PROCESSOR_SECONDS:.0f} s"
    if failure.kind == "crash":
        return f"the compiler crashed or wanted too much memory: {failure.message}"
    return failure.message


@contextmanager
def _workers(jobs: int) -> Iterator[list[Worker]]:
    """Warm workers for so many jobs, started; they are killed where the block fails."""
    wanted = min(len(os.sched_getaffinity(0)), -(-jobs // KERNELS_PER_WORKER))
    with threads(wanted) as width:
        taken = [_spare.pop() if _spare else Worker(_COMPILES, _ENV) for _ in range(width)]
        try:
            for worker in taken:  # by this thread: a child ends with the thread that started it
                worker.start()
            yield taken
        except BaseException:
            for worker in taken:
                worker.interrupt()
            raise
        _spare.extend(taken)
