"""Find programs that may give other bytes on another processor, since last bits of floats differ.

Schedules decide the order in which sums of floats are added up; functions such as exp are rounded
as a processor's instructions do it; and a product and a sum become one instruction where the
processor has one, unless a fence separates them (`own_roundings.py`). Everything else, integers and
single operations on floats, has one result.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..._tvm import collect, op_name, tirx, tvm
from .edge_values import is_float, is_update
from .own_roundings import is_one_instruction, stands_for_integers

# Calls whose float results IEEE 754 defines to the last bit, or that compute nothing.
_EXACT = frozenset((
    "prim.if_then_else", "prim.likely", "tirx.ceil", "tirx.fabs", "tirx.floor", "tirx.nearbyint",
    "tirx.reinterpret", "tirx.round", "tirx.sqrt", "tirx.trunc",
))  # fmt: skip


def may_differ(func: Any, *, on_gpu: bool = False) -> bool:
    """Whether a function that has no schedule yet may give other bytes on other processors.

    on_gpu: no fence separates products and sums there.
    """
    apart = stands_for_integers(func) and not on_gpu
    fused = not apart and is_one_instruction(func)
    return fused or _sums_floats(func) or any(map(_is_inexact, collect(func.body, tvm.ir.Call)))


def _is_inexact(call: Any) -> bool:
    return is_float(call) and op_name(call) not in _EXACT


def _sums_floats(func: Any) -> bool:
    """Whether floats are summed or multiplied up inexactly.

    Sums of which every use is made an integer hold integers, which are exact
    (`model/operators/integers.py`).
    """
    stores = collect(func.body, tirx.BufferStore)
    values = [one.value for one in stores if not _adds_up(one)]
    loads = (load.source for value in values for load in collect(value, tvm.ir.TensorLoad))
    whole = (one for value in values for one in _made_whole(value))
    cut = Counter(one.source for one in whole if isinstance(one, tvm.ir.TensorLoad))
    read = Counter(loads)
    sums = {one.buffer for one in stores if _adds_up(one)}
    return any(not cut[one] or cut[one] < read[one] for one in sums)


def _made_whole(value: Any) -> list[Any]:
    """The parts cast to an integer, or read by their bits (`model/relax/whole_sums.py`)."""
    calls = [one for one in collect(value, tvm.ir.Call) if op_name(one) == "tirx.reinterpret"]
    casts = [one.value for one in collect(value, tirx.Cast) if not is_float(one)]
    return [*casts, *(one.args[0] for one in calls if not is_float(one))]


def _adds_up(store: Any) -> bool:
    return is_update(store, tirx.Add, tirx.Mul) and is_float(store.value)
