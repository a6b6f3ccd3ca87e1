"""The forms in which the tensors of a model exist: channels first, channels last, or both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._tvm import elements, op_name, relax, tvm
from ...target import Target
from . import resizing
from .dataflow import Walk, constant_of, turned


@dataclass
class Value:
    """A tensor in the forms in which it exists: channels first, channels last, or both.

    split: channels last, where the channels are two axes in the model, as in a shuffle of them.
    """

    first: Any = None
    last: Any = None
    split: Any = None


class Forms(Walk):
    """The values seen so far, each in the forms in which it exists.

    lanes: of float32 vectors. enlarged: the call of the old function that enlarged an image.
    """

    def __init__(
        self, builder: relax.BlockBuilder, target: Target, rules: Mapping[str, Rule]
    ) -> None:
        super().__init__(builder)
        self._rules = rules
        self.lanes = target.vector_bytes // 4
        self._values: dict[Any, Value] = {}
        self._views: dict[Any, Any] = {}
        self.enlarged: dict[Any, Any] = {}

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Note that `var` means the value: computed by its operator's rule, or as it stands."""
        if isinstance(value, relax.Var):
            self._values[var] = self.value(value)
            return
        if isinstance(value, relax.TupleGetItem):
            ruled = self._part(value)
        else:
            name = op_name(value)
            ruled = self._rules[name](self, value) if name in self._rules else None
        self._values[var] = ruled or Value(first=self.emit(self.kept(value)))

    def _part(self, item: Any) -> Value | None:
        """A field of a tuple that exists channels last; None for other tuples."""
        whole = self.value(item.tuple_value).last
        if whole is None:
            return None
        return Value(last=self.emit(relax.TupleGetItem(whole, item.index)))

    def value(self, expr: relax.Expr) -> Value:
        """The forms of an operand of the old function."""
        if isinstance(expr, relax.Var):
            return self._values.setdefault(expr, Value(first=expr))
        return Value(first=expr)

    def constant(self, expr: relax.Expr) -> np.ndarray | None:
        """The operand's elements if they are known; else None."""
        first = self.value(expr).first
        return elements(first) if isinstance(first, tvm.ir.GenericConst) else None

    def has_last(self, expr: relax.Expr) -> bool:
        """Whether the operand exists channels last already."""
        return self.value(expr).last is not None

    def plain_tensor(self, expr: relax.Expr) -> relax.Expr:
        """The operand channels first, transposed if necessary."""
        value = self.value(expr)
        if value.first is None:
            value.first = self.emit(self._first_of(value), expr)
        return value.first

    def _first_of(self, value: Value) -> relax.Expr:
        """A tensor channels first; for an enlarged image, the small one is transposed."""
        if value.last is None:
            rank = rank_of(value.split)
            return turned(value.split, [0, rank - 2, rank - 1, *range(1, rank - 2)])
        if (call := self.enlarged.get(value.last)) is not None:
            return resizing.resized(call, self.plain_tensor(call.args[0]), "NCHW")
        rank = rank_of(value.last)
        return turned(value.last, [0, rank - 1, *range(1, rank - 1)])

    def view(self, of: relax.Expr, shape: list[int]) -> relax.Expr:
        """A reshaped tensor; elementwise operators on it may be computed before the reshape."""
        made = self.emit(relax.op.reshape(of, shape))
        self._views[made] = of
        return made

    def viewed(self, expr: relax.Expr) -> relax.Expr | None:
        """The tensor that this one is a view of; None if it is no view."""
        return self._views.get(expr) if isinstance(expr, relax.Var) else None

    def last(self, expr: relax.Expr) -> relax.Expr:
        """The operand channels last, transposed if necessary."""
        value = self.value(expr)
        if value.last is None:
            axes, constant = to_last(rank_of(expr)), self.constant(expr)
            moved = None if constant is None else in_order(constant, axes)
            value.last = moved or self.emit(turned(self.plain_tensor(expr), axes), expr)
        return value.last


# How to compute an operator's result in a form other than channels first; None if it is not.
Rule = Callable[[Forms, Any], "Value | None"]


def to_last(rank: int) -> list[int]:
    """The order of axes that takes N C spatial to N spatial C."""
    return [0, *range(2, rank), 1]


def axis_in_last(axis: int, rank: int) -> int:
    """Where an axis of N C spatial is in N spatial C."""
    return to_last(rank).index(axis % rank)


def rank_of(expr: Any) -> int:
    """The number of axes of a tensor; 0 for anything else."""
    return len(expr.ty.shape) if isinstance(expr.ty, relax.TensorType) else 0


def in_order(constant: np.ndarray, axes: list[int]) -> relax.Expr:
    """A constant with its axes in this order."""
    return constant_of(np.ascontiguousarray(constant.transpose(axes)))
