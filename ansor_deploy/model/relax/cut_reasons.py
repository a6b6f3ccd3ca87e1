"""Why a task ends where it does: sentences for `rules explain`, kept as function attributes."""

from collections import defaultdict
from typing import Any

from ..._tvm import bindings, op_name, relax, tirx, tvm
from ...space.canonical_text import APART
from .concatenation import OPERATOR
from .extract import readable, shortened
from .fusion import BARRIER


def with_reasons(mod: tvm.IRModule) -> tvm.IRModule:
    """The fused module; each function has the reasons why its readers are not fused with it."""
    reasons = _reasons(mod["main"])
    changed = {
        gv: func.with_attr(APART, list(dict.fromkeys(reasons[gv.name_hint])))
        for gv, func in mod.functions.items()
        if isinstance(func, tirx.PrimFunc) and gv.name_hint in reasons
    }
    return tvm.IRModule({**dict(mod.functions.items()), **changed})


def _reasons(main: relax.Function) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    makers: dict[Any, str] = {}
    behind: dict[Any, str] = {}  # for the variable of a barrier: the function before it
    for binding in bindings(main):
        value, kind = binding.value, op_name(binding.value)
        if kind == "relax.call_tir":
            makers[binding.var] = reader = value.args[0].name_hint
            for maker in filter(None, map(behind.get, value.args[1].fields)):
                found[maker].append(
                    f"{shortened(readable(reader))} would compute it again for each element"
                )
        elif kind == BARRIER:
            behind[binding.var] = makers.get(value.args[0], "")
        elif isinstance(value, relax.TupleGetItem):
            makers[binding.var] = makers.get(value.tuple_value, "")
        elif kind == "relax.call_pure_packed" and value.args[0].global_symbol == OPERATOR:
            for maker in filter(None, map(makers.get, value.args[1:])):
                others = len(value.args) - 1
                found[maker].append(f"it is written to its place in a concatenation of {others}")
    return found
