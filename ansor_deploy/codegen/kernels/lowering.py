"""The order of all lowering passes of kernels, TVM's and ours.

Where tiles do not divide an extent, the last tile is cut off: the loop over tiles, which a rule
marked (`marks/partition.py`), becomes one loop over whole tiles and one over the rest, so that no
whole tile checks where the extent ends. TVM's pass does that, for marked loops alone. The tiles of
both loops become tasks of one loop where the loop is parallel (`tile_tasks.py`). Loops inside the
rest end where the extent ends (`short_loops.py`).

Loops over what a run counts end where that ends (`ended_loops.py`). Work that is too small for a
second core is done by one (`small_loops.py`). Vectors whose lanes would write to the same memory
become loops (`shared_lanes.py`). What lanes copy from a few runs of elements is read as vectors,
and shuffled in registers (`shuffles.py`).

NaN, infinities and zero divisors give the results that ONNX defines (`edge_values.py`). Functions
such as exp become arithmetic on vectors (`vector_math.py`), and so do sines and cosines near zero
(`periodic.py`). Functions of dequantised bytes need no checks at the ends of their range
(`bounded_powers.py`, which runs after `own_roundings.py`, since its sums round once). A softmax
divides once a row (`row_quotients.py`), and floats are multiplied by reciprocals of scales where
the last bit may differ (`reciprocals.py`).

For floats that stand for integers, each operation rounds by itself (`own_roundings.py`). Quotients
by a scale are rounded by an addition (`rounding.py`; it runs later, since `own_roundings.py` looks
for the conversions that it removes). They are products where these give the same steps
(`quotients.py`). On x86 a whole register of results is narrowed to bytes at once (`byte_packs.py`),
and a whole vector of bytes is looked up in a table at once (`byte_tables.py`).
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from ..._tvm import collect, llvm_target, tirx, tvm, tvm_target
from ...marks import Place, marks
from ...space.block_view import sums_products
from ...target import Target
from ..passes.bounded_powers import bounded_powers
from ..passes.byte_packs import byte_packs
from ..passes.byte_tables import byte_tables
from ..passes.chunks import chunks
from ..passes.conditions import one_by_one
from ..passes.edge_values import edge_values, from_infinity, negations
from ..passes.ended_loops import ended_loops
from ..passes.flattening import flattened
from ..passes.own_roundings import own_roundings
from ..passes.periodic import periodic
from ..passes.reciprocals import reciprocals
from ..passes.rounding import rounding
from ..passes.row_quotients import row_quotients
from ..passes.shared_lanes import shared_lanes
from ..passes.short_loops import short_loops
from ..passes.shuffles import shuffles
from ..passes.small_loops import small_loops
from ..passes.tile_tasks import tasks
from ..passes.unchecked import packed_api
from ..passes.vector_math import on_vectors
from .heap import kept_on_stack

# The name of the pipeline as TVM knows it.
PIPELINE = "ansor"
# LLVM hoists all constants of a loop into registers before it. The constants of an activation would
# take the registers of a tile's sums, which would then be spilled and reloaded every few steps.
_KEEPING_SUMS = ["-disable-machine-licm:bool=true"]


@contextmanager
def code_generation(target: Target, *observers: Any, **config: Any) -> Iterator[None]:
    """Within it TVM generates code for a target.

    observers: TVM's instruments of passes. config: options of the pass context.
    """
    passes = tvm.transform.PassContext(opt_level=3, instruments=observers, config=config)
    with tvm_target(target), passes:
        yield


def compiled(functions: dict[str, Any], target: Target) -> Any:
    """The machine code (`tvm.runtime.Module`) of PrimFuncs by symbol; none make an empty module."""
    described = _described(functions.values(), target)
    return tvm.tirx.build(tvm.IRModule(functions), target=described, pipeline=PIPELINE)


def _described(functions: Collection[Any], target: Target) -> tvm.target.Target:
    """The target, with the LLVM options that functions with sums of products need."""
    stores = [store for func in functions for store in collect(func.body, tirx.BufferStore)]
    if target.gpu is not None or not any(map(sums_products, stores)):
        return tvm_target(target)
    found = set().union(*map(_annotations, functions))
    marked = [mark for mark in marks().values() if mark.values.keys() & found]
    options = [*_KEEPING_SUMS, *(option for mark in marked for option in mark.llvm)]
    return tvm.target.Target({**llvm_target(target), "cl-opt": options})


def _annotations(func: Any) -> set[str]:
    """The keys of all annotations of a function's loops."""
    return {key for loop in collect(func.body, tirx.For) for key in loop.annotations or {}}


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.CutOff")
def _cut_off(func: Any, _mod: Any, _context: Any) -> Any:
    """Lower a function with marked loops up to, and including, TVM's partition of loops."""
    early = [mark for mark in marks().values() if mark.place is not Place.VECTORS]
    found = _annotations(func)
    if not any(mark.values.keys() & found for mark in early):
        return func
    return tvm.transform.Sequential(_until_partitioned())(tvm.IRModule({"main": func}))["main"]


def _until_partitioned() -> list[Any]:
    """TVM's passes up to the partition of loops, and ours among them."""
    t = tvm.s_tir.transform
    return [
        *passes_at(Place.BLOCKS),
        *flattening(),
        *passes_at(Place.LOOPS),
        *passes_at(Place.STEPS),
        *passes_at(Place.BEFORE),
        tasks,
        tirx.transform.ConvertSSA(),  # each tile gets its own variables and buffers
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
    """TVM's passes from blocks to loops over flat buffers, without those for GPUs."""
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
    return func.with_body(on_vectors(periodic(func.body)))


def _on_processors() -> list[Any]:
    """TVM's passes for CPUs to functions that can be called, in its order, with ours among them.

    `RemoveNoOp` is left out, since it takes as long as simplifying: LLVM removes the same
    statements, and the code is the same to the byte.
    """
    t, s = tirx.transform, tvm.s_tir.transform
    return [
        s.CanonicalizeLoop(),
        *flattening(),
        ended_loops,
        chunks,
        s.LoopPartition(),
        shuffles,
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

    passes = [kept_on_stack, byte_tables, edge_values, _math]
    return lower, lambda: tvm.transform.Sequential([*passes, host()]), device


tirx.register_tir_pipeline(PIPELINE, _pipeline)
