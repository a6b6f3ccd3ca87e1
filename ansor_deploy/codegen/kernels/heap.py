"""Decide which buffers of a kernel lie on the stack, and read how much the others take.

TVM allocates a buffer of a kilobyte or more on the heap, however local it is. The accumulators of a
register tile are two kilobytes where 32 registers hold 64 bytes each: every tile would allocate
them, clear them, write them back beside the result and free them, although they fit in registers.
So such buffers are kept on the stack, where LLVM turns them into registers (`SROA`).
"""

from typing import Any, NamedTuple

from ..._tvm import structural_map, tirx, tvm
from ..passes.buffer_sizes import STACK_BYTES, size_of

# TVM's annotation of an allocation that stays as it is (src/tirx/transform/lower_tvm_builtin.cc).
_LEFT_ALONE = "disable_lower_builtin"
_NAME = "ansor.KeptOnStack"
_SIZE_BYTES = 8


class CpuKernel(NamedTuple):
    """The object file of a kernel. heap: the bytes that its buffers take while it runs."""

    heap: int
    code: bytes

    def to_bytes(self) -> bytes:
        """The kernel as the cache of kernels has it."""
        return self.heap.to_bytes(_SIZE_BYTES, "little") + self.code

    @classmethod
    def from_bytes(cls, kept: bytes) -> "CpuKernel":
        """The kernel that `to_bytes` wrote."""
        return cls(int.from_bytes(kept[:_SIZE_BYTES], "little"), kept[_SIZE_BYTES:])


@tirx.transform.prim_func_pass(opt_level=0, name=_NAME)
def kept_on_stack(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with its small buffers on the stack."""
    return func.with_body(structural_map(func.body, (tirx.AllocBuffer, _kept)))


def _kept(allocation: Any) -> Any:
    if not 0 < size_of(allocation) <= STACK_BYTES:
        return allocation
    marked = {**(allocation.annotations or {}), _LEFT_ALONE: tirx.IntImm("bool", 1)}
    return tirx.AllocBuffer(allocation.buffer, marked, allocation.span)


@tvm.ir.instrument.pass_instrument
class Heap:
    """Reads how much memory the kernels that are compiled with it take from the heap.

    bytes: what the largest of them takes. cores: how many threads run a parallel loop, each with
    its own buffers.
    """

    def __init__(self, cores: int) -> None:
        self.bytes, self._cores = 0, cores

    def run_after_pass(self, mod: Any, info: Any) -> None:
        """Called by TVM after each pass."""
        if info.name == _NAME:
            peaks = [_peak(func.body, self._cores) for func in mod.functions.values()]
            self.bytes = max([self.bytes, *peaks])


def _peak(stmt: Any, cores: int) -> int:
    """The most bytes that the buffers of a statement take from the heap at the same time."""
    if isinstance(stmt, tirx.SeqStmt):
        sizes = [size_of(one) for one in stmt.seq if isinstance(one, tirx.AllocBuffer)]
        inside = max(_peak(one, cores) for one in stmt.seq)
        return inside + sum(size for size in sizes if size > STACK_BYTES)
    if isinstance(stmt, tirx.IfThenElse):
        return max(_peak(one, cores) for one in (stmt.then_case, stmt.else_case) if one is not None)
    if isinstance(stmt, tirx.For) and stmt.kind == tirx.ForKind.PARALLEL:
        return cores * _peak(stmt.body, 1)
    body = getattr(stmt, "body", None)
    return 0 if body is None else _peak(body, cores)
