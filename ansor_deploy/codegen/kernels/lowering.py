"""TVM's lowering of kernels, with ours: stack, cut-off tails, edge values, vector functions.

TVM takes a buffer of a kilobyte or more from the heap, however local it is. The accumulators of a
register tile are two kilobytes where 32 registers hold 64 bytes each: every tile would allocate
them, clear them, write them back beside the result and free them, though they live in registers.
What is on the stack, LLVM makes registers of (`SROA`).

Where tiles do not divide an extent, the last is cut off: the loop over tiles, which a rule marked
(`marks/partition.py`), becomes one over whole tiles and one over the rest, so that no whole
tile asks where the extent ends. TVM's pass does that, for marked loops alone; of parallel ones,
both kinds of tiles become tasks of one loop (`tile_tasks.py`). Loops in what was cut off end where
it does (`short_loops.py`).

What is not worth a second core is done by one (`small_loops.py`). Vectors whose lanes would share
memory are loops (`shared_lanes.py`).

NaN, infinities and zero divisors get what ONNX has for them (`edge_values.py`), and exp and its
like become arithmetic on vectors (`vector_math.py`), of bytes with nothing asked about the ends
(`bounded_powers.py`, after `own_roundings.py`: its sums round once). A softmax divides once a row
(`row_quotients.py`), and floats are multiplied by scales, where their last bits are anybody's
(`reciprocals.py`). Of numbers that stand for integers each operation has a rounding of its own
(`own_roundings.py`), steps of a scale are rounded by an addition (`rounding.py`, after the former,
which asks for the conversions that this one takes away), on x86 a register of them is narrowed to
bytes at once (`byte_packs.py`), and a vector of bytes is looked up in a table at once
(`byte_tables.py`).
"""

import math
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from ..._tvm import collect, llvm_target, structural_map, tirx, tvm, tvm_target
from ...marks import Place, marks
from ...space.block_view import sums_products
from ...target import Target
from ..passes.bounded_powers import bounded_powers
from ..passes.byte_packs import byte_packs
from ..passes.byte_tables import byte_tables
from ..passes.chunks import chunks
from ..passes.conditions import one_by_one
from ..passes.edge_values import edge_values, from_infinity, negations
from ..passes.flattening import flattened
from ..passes.own_roundings import own_roundings
from ..passes.reciprocals import reciprocals
from ..passes.rounding import rounding
from ..passes.row_quotients import row_quotients
from ..passes.shared_lanes import shared_lanes
from ..passes.short_loops import short_loops
from ..passes.small_loops import small_loops
from ..passes.tile_tasks import tasks
from ..passes.unchecked import packed_api
from ..passes.vector_math import on_vectors

# Name of the pipeline.
PIPELINE = "ansor"
# LLVM loads the constants of a loop before it, all that there are: those of an activation would
# take the registers of the sums of a tile, which then go to memory and back at every few steps.
_KEEPING_SUMS = ["-disable-machine-licm:bool=true"]
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
    described = _described(functions.values(), target)
    return tvm.tirx.build(tvm.IRModule(functions), target=described, pipeline=PIPELINE)


def _described(functions: Collection[Any], target: Target) -> tvm.target.Target:
    """The target, with what LLVM is to leave out where functions keep sums of products."""
    stores = [store for func in functions for store in collect(func.body, tirx.BufferStore)]
    if target.gpu is not None or not any(map(sums_products, stores)):
        return tvm_target(target)
    found = set().union(*map(_annotations, functions))
    marked = [mark for mark in marks().values() if mark.values.keys() & found]
    options = [*_KEEPING_SUMS, *(option for mark in marked for option in mark.llvm)]
    return tvm.target.Target({**llvm_target(target), "cl-opt": options})


def _annotations(func: Any) -> set[str]:
    """The keys of what the loops of a function are annotated with."""
    return {key for loop in collect(func.body, tirx.For) for key in loop.annotations or {}}


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
    if buffer.scope() not in ("global", "local") or not constant:
        return 0
    return math.prod(int(extent) for extent in buffer.shape) * buffer.dtype.itemsize


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.CutOff")
def _cut_off(func: Any, _mod: Any, _context: Any) -> Any:
    """Lower a function with marked loops as far as TVM partitions loops, and write these out."""
    early = [mark for mark in marks().values() if mark.place is not Place.VECTORS]
    found = _annotations(func)
    if not any(mark.values.keys() & found for mark in early):
        return func
    return tvm.transform.Sequential(_until_partitioned())(tvm.IRModule({"main": func}))["main"]


def _until_partitioned() -> list[Any]:
    """TVM's own passes up to that one, and ours before it."""
    t = tvm.s_tir.transform
    return [
        *passes_at(Place.BLOCKS),
        *flattening(),
        *passes_at(Place.LOOPS),
        *passes_at(Place.STEPS),
        *passes_at(Place.BEFORE),
        tasks,
        tirx.transform.ConvertSSA(),  # each tile is of variables and buffers of its own
        t.StmtSimplify(),
        *passes_at(Place.ENDS),
        t.StmtSimplify(),
    ]


def passes_at(place: Place) -> list[Any]:
    """The passes of the marks that have this place."""
    return [_pass(mark.lower) for mark in marks().values() if mark.place is place]


def _pass(lower: Callable[[Any], Any]) -> Any:
    name = f"ansor.{lower.__name__}"
    return tirx.transform.prim_func_pass(lambda func, *_: lower(func), opt_level=0, name=name)


def flattening() -> list[Any]:
    """TVM's passes from blocks to loops over flat buffers, less what is for GPUs."""
    t = tvm.s_tir.transform
    return [
        t.LowerInitBlock(),
        t.PlanAndUpdateBufferAllocationLocation(),
        t.ConvertBlocksToOpaque(),
        t.CompactBufferAllocation(),
        t.LowerMatchBuffer(),
        t.StmtSimplify(),
        t.LowerOpaqueBlock(),
        flattened,
        tirx.transform.BF16ComputeLegalize(),
        tirx.transform.NarrowDataType(32),
    ]


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.VectorMath")
def _math(func: Any, _mod: Any, _context: Any) -> Any:
    return func.with_body(on_vectors(func.body))


def _on_processors() -> list[Any]:
    """TVM's passes to functions that can be called, in its order, less what is for GPUs.

    And less its search for what has no effect (`RemoveNoOp`), which takes as long as to simplify:
    LLVM finds the same, and the code is the same to the byte.
    """
    t, s = tirx.transform, tvm.s_tir.transform
    return [
        s.CanonicalizeLoop(),
        *flattening(),
        chunks,
        s.LoopPartition(),
        t.VectorizeLoop(),
        t.StorageRewrite(),
        s.HoistIfThenElse(),
        short_loops,
        *passes_at(Place.VECTORS),
        byte_packs,
        t.UnrollLoop(),
        s.RenormalizeSplitPattern(),
        t.StmtSimplify(),
        s.RewriteUnsafeSelect(),
        t.CommonSubexprElim(),
        one_by_one,
        t.FP8ComputeLegalize(),
        t.VerifyMemory(),
        t.AnnotateEntryFunc(),
        t.SplitHostDevice(),
        packed_api,
        t.FP8StorageLegalize(),
        t.BF16StorageLegalize(),
    ]


def _pipeline() -> tuple[Any, Callable[[], Any], Callable[[], Any]]:
    everything, host, device = tirx.get_tir_pipeline("s_tir")

    def lower(mod: Any) -> Any:
        kinds = {func.attrs["target"].kind.name for func in mod.functions.values()}
        passes = _on_processors() if kinds <= {"llvm"} else [everything]
        first = [negations, from_infinity, row_quotients, reciprocals]
        first += [own_roundings, bounded_powers, rounding, small_loops, shared_lanes]
        return tvm.transform.Sequential([*first, _cut_off, *passes])(mod)

    passes = [_keep_on_stack, byte_tables, edge_values, _math]
    return lower, lambda: tvm.transform.Sequential([*passes, host()]), device


tirx.register_tir_pipeline(PIPELINE, _pipeline)
