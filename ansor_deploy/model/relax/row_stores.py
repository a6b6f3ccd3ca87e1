"""A program as its stores, each with the loops and conditions around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..._tvm import collect, structural_map, tirx, tvm


class OpaqueError(Exception):
    """A program has a statement that cannot be read as a store to a tensor."""


@dataclass(frozen=True)
class Store:
    """A value stored at a place. guards: the conditions of the branches and blocks around it."""

    buffer: Any
    indices: tuple[Any, ...]
    value: Any
    guards: tuple[Any, ...]


class Stores:
    """The stores of a program, written in terms of its loop variables only.

    extents: of the loops, which begin at 0. around: the loops in which a tensor is made anew each
    time, as if it had one more axis for each.
    """

    def __init__(self, func: Any) -> None:
        self.extents: dict[Any, int] = {}
        self.around: dict[Any, tuple[Any, ...]] = {}
        self._meant: dict[Any, Any] = {}  # the expression that a variable stands for
        self.all = list(self._of(func.body, (), ()))

    def _of(self, stmt: Any, loops: tuple[Any, ...], guards: tuple[Any, ...]) -> Iterator[Store]:
        inner = partial(self._of, loops=loops, guards=guards)
        match stmt:
            case tirx.SeqStmt():
                yield from (found for one in stmt.seq for found in inner(one))
            case tirx.For():
                yield from self._of_loop(stmt, loops, guards)
            case tirx.IfThenElse():
                within = (*guards, self._in_loops(stmt.condition))
                for one in filter(None, (stmt.then_case, stmt.else_case)):
                    yield from self._of(one, loops, within)
            case tvm.s_tir.SBlockRealize():
                yield from self._of_block(stmt, loops, guards)
            case tirx.AttrStmt():
                yield from inner(stmt.body)
            case tirx.BufferStore():
                indices = tuple(map(self._in_loops, stmt.indices))
                yield Store(stmt.buffer, indices, self._in_loops(stmt.value), guards)
            case _:
                self._note(stmt, loops)

    def _note(self, stmt: Any, loops: tuple[Any, ...]) -> None:
        """Note a statement that stores nothing; OpaqueError if it is of a kind that may store."""
        if isinstance(stmt, tirx.AllocBuffer):
            self.around[stmt.buffer] = loops
        elif isinstance(stmt, tirx.Bind):
            self._meant[stmt.var] = self._in_loops(stmt.value)
        elif not isinstance(stmt, tirx.AssertStmt):
            raise OpaqueError(type(stmt).__name__)

    def _of_loop(self, loop: Any, loops: Any, guards: Any) -> Iterator[Store]:
        least, extent = self._in_loops(loop.min), self._in_loops(loop.extent)
        if isinstance(least, tirx.IntImm) and isinstance(extent, tirx.IntImm):
            # A new variable, since one may serve two loops.
            var = tirx.Var(loop.loop_var.name, loop.loop_var.ty.dtype)
            self.extents[var] = int(extent)
            self._meant[loop.loop_var] = var + least
            yield from self._of(loop.body, (*loops, var), guards)
        else:
            raise OpaqueError("a loop of so many steps as data say")

    def _of_block(self, realize: Any, loops: Any, guards: Any) -> Iterator[Store]:
        block = realize.block
        if block.match_buffers:
            raise OpaqueError("match_buffer")
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
            self._meant[axis.var] = self._in_loops(value)
        self.around.update(dict.fromkeys(block.alloc_buffers, loops))
        within = (*guards, self._in_loops(realize.predicate))
        for part in filter(None, (block.init, block.body)):
            yield from self._of(part, loops, within)

    def _in_loops(self, expr: Any) -> Any:
        return structural_map(expr, (tvm.ir.Var, lambda var: self._meant.get(var, var)))


def variables(exprs: Iterable[Any]) -> set[Any]:
    """All variables in expressions, including tensors."""
    return {var for expr in exprs for var in collect(expr, tvm.ir.Var)}
