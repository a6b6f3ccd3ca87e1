"""TVM's lowering of kernels, with the buffers that only one thread uses on its stack.

TVM takes a buffer of a kilobyte or more from the heap, however local it is. The accumulators of a
register tile are two kilobytes where 32 registers hold 64 bytes each: every tile would allocate
them, clear them, write them back beside the result and free them, though they live in registers.
What is on the stack, LLVM makes registers of (`SROA`).
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._tvm import structural_map, tirx, tvm, tvm_target
from ..target import Target

# Name of the pipeline.
PIPELINE = "ansor"
# A buffer that stays on the stack of a thread, of which a program has a few at most; the smallest
# stacks that systems give a thread are 128 KiB.
STACK_BYTES = 4096
# TVM's mark of an allocation that is left alone (src/tirx/transform/lower_tvm_builtin.cc).
_LEFT_ALONE = "disable_lower_builtin"


@contextmanager
def code_generation(target: Target, **config: Any) -> Iterator[None]:
    """Within it TVM generates code for a target. config: of the pass context."""
    with tvm_target(target), tvm.transform.PassContext(opt_level=3, config=config):
        yield


def compiled(functions: dict[str, Any], target: Target) -> Any:
    """The machine code (`tvm.runtime.Module`) of PrimFuncs by symbol; none make an empty module."""
    return tvm.tirx.build(tvm.IRModule(functions), target=tvm_target(target), pipeline=PIPELINE)


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.KeepOnStack")
def _keep_on_stack(func: Any, _mod: Any, _context: Any) -> Any:
    return func.with_body(structural_map(func.body, (tirx.AllocBuffer, _kept)))


def _kept(allocation: Any) -> Any:
    if not 0 < _bytes(allocation.buffer) <= STACK_BYTES:
        return allocation
    marked = {**(allocation.annotations or {}), _LEFT_ALONE: tirx.IntImm("bool", 1)}
    return tirx.AllocBuffer(allocation.buffer, marked, allocation.span)


def _bytes(buffer: Any) -> int:
    """Size of a buffer; 0 if it is not known before a run, or if it is no memory of the host's."""
    constant = all(isinstance(extent, tirx.IntImm) for extent in buffer.shape)
    if buffer.scope() != "global" or not constant:
        return 0
    return math.prod(int(extent) for extent in buffer.shape) * buffer.dtype.itemsize


def _pipeline() -> tuple[Any, Callable[[], Any], Callable[[], Any]]:
    lower, host, device = tirx.get_tir_pipeline("s_tir")
    return lower, lambda: tvm.transform.Sequential([_keep_on_stack, host()]), device


tirx.register_tir_pipeline(PIPELINE, _pipeline)
