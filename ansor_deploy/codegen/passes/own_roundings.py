"""Round products of floats that stand for integers before anything is added to them.

    y = (a - za) * p + (b - zb) * q    -->    y = fence((a - za) * p) + fence((b - zb) * q)

LLVM fuses a product and a sum into one instruction where the processor has one, and this rounds
once. It may fuse either of two products, and the schedule decides which products are in one kernel.
But the last bit can decide a step of a quantised network. So each operation rounds by itself, as
ONNX defines it, and all processors give the same bytes. The fence itself is no instruction.

Reductions (s = s + a * b) are left as they are, and so are kernels without such floats.
"""

from functools import partial
from typing import Any

from ..._tvm import collect, structural_map, tirx, tvm
from .edge_values import is_float, is_update

_FENCE = "llvm.arithmetic.fence"


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.OwnRoundings")
def own_roundings(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with a fence around each product that something may be added to."""
    if func.attrs["target"].kind.name != "llvm" or not stands_for_integers(func):
        return func
    return func.with_body(_apart_in(func))


def is_one_instruction(func: Any) -> bool:
    """Whether a function, scheduled or not, has a product that something may be added to."""
    return len(collect(_apart_in(func), tvm.ir.Call)) > len(collect(func.body, tvm.ir.Call))


def _apart_in(func: Any) -> Any:
    """The body with a fence around each product that something may be added to."""
    given = set(func.params)
    return structural_map(func.body, (tirx.BufferStore, partial(_fenced, given)))


def stands_for_integers(func: Any) -> bool:
    """Whether a function converts elements of a tensor from integers to floats, or back."""
    return any(map(_converts, collect(func.body, tirx.Cast)))


def _converts(cast: Any) -> bool:
    return is_float(cast) != is_float(cast.value) and bool(collect(cast.value, tvm.ir.TensorLoad))


def _fenced(given: set[Any], store: Any) -> Any:
    """A store without a product that LLVM could fuse. given: the parameters, not read again."""
    if is_update(store, tirx.Add):
        return store
    value = structural_map(store.value, ((tirx.Add, tirx.Sub), _apart))
    if store.buffer not in given:
        value = _alone(value)  # something may be added where the buffer is read
    return tirx.BufferStore(store.buffer, value, store.indices)


def _apart(node: Any) -> Any:
    return type(node)(_alone(node.a), _alone(node.b))


def _alone(value: Any) -> Any:
    """A product of floats in a fence; any other value as it is."""
    if not isinstance(value, tirx.Mul) or not is_float(value):
        return value
    return tirx.call_llvm_pure_intrin(str(value.ty.dtype), _FENCE, value)
