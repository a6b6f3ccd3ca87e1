"""Programs that check before each access that it is within its buffer, and abort otherwise.

    y[i] = x[i + 1]   -->   if 0 <= i < 8: y[i] = (x[i + 1] if 0 <= i + 1 < 8 else abort())
                            else: abort()

TVM's own pass for this (`InstrumentBoundCheckers`) checks nothing in 0.27: no pass writes the sizes
that it looks for any more. This pass runs after all others, when buffers are flat and of known
size. A vector is within its buffer if each lane is. The address of a prefetch is not read, and may
be anywhere.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ansor_deploy._tvm import op_name, shape_of, structural_map, tirx, tvm
from ansor_deploy.codegen.kernels import candidate, lowering

_PIPELINE = f"{lowering.PIPELINE}.checked"


def build(payload: dict[str, Any]) -> dict[str, Any]:
    """As `candidate.build`, but the program is checked; for a process of its own."""
    _register()
    lowering.PIPELINE = _PIPELINE
    return candidate.build(payload)


@cache
def _register() -> None:
    usual = lowering._pipeline  # noqa: SLF001

    def pipeline() -> Any:
        lower, host, device = usual()
        *ours, last = host().passes
        return lower, lambda: tvm.transform.Sequential([*ours, _checks, last]), device

    tirx.register_tir_pipeline(_PIPELINE, pipeline)


@tirx.transform.prim_func_pass(opt_level=0, name="fuzz.Checks")
def _checks(func: Any, _mod: Any, _context: Any) -> Any:
    return checked(func)


def checked(func: Any) -> Any:
    """A lowered function that aborts its process before it accesses memory outside a buffer."""
    changes = [(tvm.ir.TensorLoad, _load), (tirx.BufferStore, _store), (tvm.ir.Call, _address)]
    return func.with_body(structural_map(func.body, changes))


def _load(load: Any) -> Any:
    if (inside := _inside(load.source, load.indices)) is None:
        return load
    kind = load.ty.dtype
    lanes = getattr(kind, "lanes", 1)
    gone: Any = tirx.call_extern(str(kind).partition("x")[0], "abort")
    gone = tirx.Broadcast(gone, lanes) if lanes > 1 else gone
    return tirx.if_then_else(inside, load, gone)


def _store(store: Any) -> Any:
    if (inside := _inside(store.buffer, store.indices)) is None:
        return store
    return tirx.IfThenElse(inside, store, tirx.Evaluate(tirx.call_extern("int32", "abort")))


def _address(call: Any) -> Any:
    """Restore the operand of `address_of`: the address of an element is not its value."""
    if op_name(call) != "tirx.address_of" or not isinstance(call.args[0], tvm.ir.Call):
        return call
    return tvm.ir.Call(call.op, [call.args[0].args[1]], call.attrs, ret_ty=call.ty)


def _inside(buffer: Any, indices: Any) -> Any:
    """Whether all lanes of an index are within the buffer; None where the buffer is not flat."""
    extents = shape_of(buffer)
    if len(extents) != 1 or len(indices) != 1:
        return None
    asked = [lane >= 0 for lane in _ends(indices[0])]
    asked += [lane < extents[0] for lane in _ends(indices[0])]
    return tirx.all(*asked)


def _ends(index: Any) -> list[Any]:
    """Lanes of an index that include the least and the greatest."""
    lanes = getattr(index.ty.dtype, "lanes", 1)
    if lanes == 1:
        return [index]
    if isinstance(index, tirx.Broadcast):
        return [index.value]
    if isinstance(index, tirx.Ramp):
        return [index.base, index.base + index.stride * (lanes - 1)]
    return [tirx.Shuffle([index], [lane]) for lane in range(lanes)]
