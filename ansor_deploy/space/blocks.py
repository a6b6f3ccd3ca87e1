"""Questions about the blocks of a program that schedules and keys need answered."""

from __future__ import annotations

from typing import Any

from .._tvm import structural_walk, tirx, tvm

SPATIAL, REDUCE = tirx.IterVar.DataPar, tirx.IterVar.CommReduce


def blocks(sch: Any) -> list[Any]:
    """The program's blocks in order, as the schedule's random variables."""
    return list(sch.get_child_blocks(sch.get_sblock("root")))


def is_reduction(block: Any) -> bool:
    """Whether any of its axes reduces."""
    return any(axis.iter_type == REDUCE for axis in block.iter_vars)


def spatial_vars(block: Any) -> list[tirx.Var]:
    """Its data-parallel axes, outermost first."""
    return [axis.var for axis in block.iter_vars if axis.iter_type == SPATIAL]


def reduce_vars(block: Any) -> list[tirx.Var]:
    """Its reducing axes, outermost first."""
    return [axis.var for axis in block.iter_vars if axis.iter_type == REDUCE]


def has_call(block: Any, *names: str) -> bool:
    """Whether its body calls one of these operators; any at all where none is named."""
    found: list[bool] = []

    def visit(node: Any) -> None:
        name = getattr(node.op, "name", "")
        found.append(not names or any(name.endswith(wanted) for wanted in names))

    structural_walk(block.body, (tvm.ir.Call, visit))
    return any(found)


def uses(expr: Any, var: tirx.Var) -> bool:
    """Whether an index expression mentions the variable."""
    found: list[bool] = []

    def visit(node: Any) -> None:
        found.append(node.same_as(var))

    structural_walk(expr, (tirx.Var, visit))
    return any(found)


def operands(block: Any) -> list[tuple[Any, list[Any]]]:
    """Each buffer the block reads apart from its own output, with its index expressions.

    A buffer read at two places appears twice.
    """
    written = [region.source for region in block.writes]
    loads: list[tuple[Any, list[Any]]] = []

    def visit(node: Any) -> None:
        if not any(node.source.same_as(buffer) for buffer in written):
            loads.append((node.source, list(node.indices)))

    structural_walk(block.body, (tvm.ir.TensorLoad, visit))
    return loads


def is_contraction(block: Any) -> bool:
    """A reduction over products, each operand lacking an axis of the output (Ansor 4.1)."""
    if not is_reduction(block) or not _sums_products(block):
        return False
    wide = [axis.var for axis in block.iter_vars if int(axis.dom.extent) > 1]
    spatial = [var for var in spatial_vars(block) if any(var.same_as(w) for w in wide)]
    loads = operands(block)
    lacking = [
        any(not any(uses(index, var) for index in indices) for var in spatial)
        for _, indices in loads
    ]
    return len(loads) >= 2 and any(lacking)


def keeps_contiguous_axis(block: Any) -> bool:
    """Whether an operand's contiguous axis is the result's, so that lanes are whole results."""
    spatial = spatial_vars(block)
    loads = operands(block)
    return bool(spatial) and any(idx and uses(idx[-1], spatial[-1]) for _, idx in loads)


def along_rows(block: Any) -> bool:
    """Whether it reduces along the contiguous axis of every buffer that it reduces."""
    if is_contraction(block):
        return False
    spatial, reduced = spatial_vars(block), reduce_vars(block)
    for _, indices in operands(block):
        # Other operands hold one value a row, such as its maximum.
        if not any(uses(index, var) for index in indices for var in reduced):
            continue
        if spatial and uses(indices[-1], spatial[-1]):
            return int(block.iter_vars[len(spatial) - 1].dom.extent) == 1
    return is_reduction(block)


def _sums_products(block: Any) -> bool:
    """Whether its body is out = out + a * b, whatever a and b are."""
    added = getattr(block.body, "value", None)
    term = added.b if isinstance(added, tirx.Add) else None
    while isinstance(term, tirx.Cast):
        term = term.value
    return isinstance(term, tirx.Mul)
