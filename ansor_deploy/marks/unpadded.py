"""Products with the zeros that pad an operand are left out.

    for r (marked): for s (unrolled): acc += (x[h + r, s] if 1 <= h + r and 1 <= s else 0) * k[r, s]
    -->
    for r: if 1 <= h + r: for s (unrolled): if 1 <= s: acc += x[h + r, s] * k[r, s]

In unrolled loops the condition is a constant at each step, and disappears.
"""

from __future__ import annotations

from typing import Any

from .._lazy_tvm import conjuncts, lane, op_name, structural_equal, structural_map, tirx, uses
from ..system.checks import flag
from . import Mark, Place
from .prefetch import with_body

# Annotation of a loop over taps that is outside all loops that read padding.
UNPADDED = "ansor.unpadded"


def unpadded(sch: Any, loop: Any) -> None:
    """Let lowering leave out a loop's products with the zeros of padding."""
    sch.annotate(loop, UNPADDED, True)


def without_padding(func: Any) -> Any:
    """The function with conditions in marked loops. Loops over lanes must be vectors already."""
    return func.with_body(structural_map(func.body, (tirx.For, _marked)))


def _marked(loop: Any) -> Any:
    return _guarded(*_parts(loop)) if UNPADDED in (loop.annotations or {}) else loop


def _parts(body: Any) -> tuple[list[Any], Any]:
    """The conditions of a statement that can be tested outside it, and the remaining statement."""
    if isinstance(body, tirx.For):
        found, inner = _parts(body.body)
        own = [one for one in found if uses(one, body.loop_var)]
        loop = with_body(body, _guarded(own, inner), UNPADDED)
        return [one for one in found if not any(one.same_as(other) for other in own)], loop
    if isinstance(body, tirx.SeqStmt):  # neighbouring panels
        return _of_several([_parts(one) for one in body.seq])
    if isinstance(body, tirx.IfThenElse) and body.else_case is None:
        found, inner = _parts(body.then_case)
        return found, tirx.IfThenElse(body.condition, inner, None)
    if isinstance(body, tirx.BufferStore) and isinstance(body.value, tirx.Add):
        return _product(body)
    return [], body


def _of_several(each: list[tuple[list[Any], Any]]) -> tuple[list[Any], Any]:
    """The conditions that all statements share, and the statements without them.

    Where conditions differ, each statement keeps its own.
    """
    found, _ = each[0]
    if all(structural_equal(found, other) for other, _ in each):
        return found, tirx.SeqStmt([inner for _, inner in each])
    return [], tirx.SeqStmt([_guarded(*one) for one in each])


def _product(store: Any) -> tuple[list[Any], Any]:
    """The conditions under which a store adds a product, and the store without them."""
    total, product = store.value.a, store.value.b
    if isinstance(product, tirx.Mul):
        for chosen, other in ((product.a, product.b), (product.b, product.a)):
            if op_name(chosen) == "prim.if_then_else" and _is_zero(chosen.args[2]):
                condition, value, _ = chosen.args
                added = tirx.BufferStore(store.buffer, total + value * other, store.indices)
                return conjuncts(condition), added
    return [], store


def _is_zero(value: Any) -> bool:
    return getattr(lane(value), "value", None) == 0


def _guarded(conditions: list[Any], body: Any) -> Any:
    return tirx.IfThenElse(tirx.all(*conditions), body, None) if conditions else body


MARK = Mark({UNPADDED: flag}, Place.VECTORS, without_padding, verbs=("unpadded",))
