"""Append rows to caches without a kernel that copies a cache: `codegen/memory/appended.py`.

c = append(cache, new, at)      a function, which makes another tensor
-->
c = ansor.append(cache, new, at)        until memory is planned, where c is the cache
"""

from __future__ import annotations

from typing import Any

from ..._tvm import bindings, op_name, relax, tvm
from ...errors import ModelError
from ..operators.appended import MARK
from .dataflow import Renaming, rewritten

# The name of the packed function that stands for it until then.
OPERATOR = "ansor.append"


def with_appended(mod: tvm.IRModule) -> tvm.IRModule:
    """The legalised module; its functions that append are calls of `OPERATOR`."""
    if not any(_appends(mod, one.value) for one in bindings(mod["main"])):
        return mod
    made = rewritten(mod, lambda builder: _Appending(builder, mod))
    if made is mod:
        raise ModelError(
            "a model with branches that a run chooses cannot keep its caches",
            "cut the graph before them, or build it without --context",
        )
    return made


class _Appending(Renaming):
    def __init__(self, builder: relax.BlockBuilder, mod: tvm.IRModule) -> None:
        super().__init__(builder)
        self._mod = mod

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Note that `var` is this value, or a cache after rows were appended to it."""
        if not _appends(self._mod, value):
            super().bind(var, value)
            return
        given = [self.plain(one) for one in value.args[1].fields]
        self.new[var] = self.emit(relax.call_pure_packed(OPERATOR, *given, ty_args=var.ty))


def _appends(mod: tvm.IRModule, value: Any) -> bool:
    return op_name(value) == "relax.call_tir" and MARK in (mod[value.args[0]].attrs or {})
