"""Products of numbers that stand for integers are rounded before they are added to.

    y = (a - za) * p + (b - zb) * q    -->    y = fence((a - za) * p) + fence((b - zb) * q)

LLVM makes one instruction of a product and a sum where a processor has one, which rounds once. Of
two products it takes either, and which of them stand in one kernel hangs on schedules. But the
last bit decides a step of a quantised network: so each operation has a rounding of its own, as
ONNX has it, and all processors make the same bytes. The fence itself is no instruction.

Sums of products (s = s + a * b) are left as they are, and so are kernels without such numbers.
"""

from functools import partial
from typing import Any

from ..._tvm import collect, structural_map, tirx, tvm
from .edge_values import is_float, is_update

_FENCE = "llvm.arithmetic.fence"


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.OwnRoundings")
def own_roundings(func: Any, _mod: Any, _context: Any) -> Any:
    """The function, a fence around each product that something may be added to."""
    if func.attrs["target"].kind.name != "llvm" or not stands_for_integers(func):
        return func
    return func.with_body(_apart_in(func))


def is_one_instruction(func: Any) -> bool:
    """Whether there is a product in a function, scheduled or not, that something is added to."""
    return len(collect(_apart_in(func), tvm.ir.Call)) > len(collect(func.body, tvm.ir.Call))


def _apart_in(func: Any) -> Any:
    """The body, a fence around each product that something may be added to."""
    given = set(func.params)
    return structural_map(func.body, (tirx.BufferStore, partial(_fenced, given)))


def stands_for_integers(func: Any) -> bool:
    """Whether it makes floats of a tensor of integers, or integers of one of floats."""
    return any(map(_converts, collect(func.body, tirx.Cast)))


def _converts(cast: Any) -> bool:
    return is_float(cast) != is_float(cast.value) and bool(collect(cast.value, tvm.ir.TensorLoad))


def _fenced(given: set[Any], store: Any) -> Any:
    """A store without what LLVM would fuse. given: the caller's buffers, which are not read."""
    if is_update(store, tirx.Add):
        return store
    value = structural_map(store.value, ((tirx.Add, tirx.Sub), _apart))
    if store.buffer not in given:
        value = _alone(value)  # which is added to where it is read
    return tirx.BufferStore(store.buffer, value, store.indices)


def _apart(node: Any) -> Any:
    return type(node)(_alone(node.a), _alone(node.b))


def _alone(value: Any) -> Any:
    """A product of floats behind a fence, all else as it is."""
    if not isinstance(value, tirx.Mul) or not is_float(value):
        return value
    return tirx.call_llvm_pure_intrin(str(value.ty.dtype), _FENCE, value)
