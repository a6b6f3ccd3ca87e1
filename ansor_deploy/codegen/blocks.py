"""The innermost blocks of a scheduled program, each with the loops around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .._tvm import collect, substituted, sym, tirx, tvm


class Leaf(NamedTuple):
    """A block that contains no loops. loops: those around it, the outermost first."""

    loops: tuple[Any, ...]
    realize: Any

    @property
    def block(self) -> Any:
        """The block itself."""
        return self.realize.block


def leaves(stmt: Any, loops: tuple[Any, ...] = ()) -> Iterator[Leaf]:
    """The blocks of a statement that contain no loops. loops: those around the statement."""
    if isinstance(stmt, tirx.For):
        yield from leaves(stmt.body, (*loops, stmt))
    elif isinstance(stmt, tirx.SeqStmt):
        for one in stmt.seq:
            yield from leaves(one, loops)
    elif isinstance(stmt, tvm.s_tir.SBlockRealize):
        if stmt.block.iter_vars or not collect(stmt.block.body, tvm.s_tir.SBlockRealize):
            yield Leaf(loops, stmt)
        else:
            yield from leaves(stmt.block.body, loops)


def outside(index: Any, realize: Any) -> Any:
    """An index of a block, with its axes replaced by their values in the loops around it."""
    axes = [axis.var for axis in realize.block.iter_vars]
    return substituted(index, list(zip(axes, realize.iter_values, strict=True)))


def at_begin(index: Any, loops: Iterable[Any]) -> Any:
    """An index at the first iteration of all these loops."""
    return substituted(index, [(one.loop_var, one.min) for one in loops])


def within(loops: Iterable[Any]) -> Any:
    """An analyzer that knows the ranges of these loops' variables."""
    analyzer = sym.Analyzer()
    for one in loops:
        analyzer.bind(one.loop_var, tvm.ir.Range.from_min_extent(one.min, one.extent))
    return analyzer
