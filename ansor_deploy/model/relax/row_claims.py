"""The tensors of a program that have rows: claims that every store keeps (`rows.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..._tvm import shape_of, structural_map, sym, tirx, tvm
from ..operators.converting import ROWS_APART
from .row_stores import OpaqueError, Store, Stores, variables


class Along(NamedTuple):
    """How rows lie along an axis: `steps` elements each, in turn, then again from the first row.

    (8, 64) has 8 rows of 1 step along its first axis. (512,) has 8 rows of 64 steps if it is a
    reshaped (8, 64), and 8 rows of 1 step, 64 times, if it is a reshaped (64, 8).
    """

    axis: int
    steps: int


def all_along(shape: Iterable[int], rows: int) -> set[Along]:
    """The ways in which a tensor's rows may lie: outermost in an axis, or innermost."""
    whole = [(axis, n) for axis, n in enumerate(shape) if n and n % rows == 0]
    return {Along(axis, steps) for axis, n in whole for steps in (1, n // rows)}


@dataclass(frozen=True)
class Rows:
    """What is known of a tensor's rows.

    axes: the ways in which its row n depends only on row n of the batch, as every other row does on
    its own. alike: whether no element depends on the batch.
    """

    axes: frozenset[Along] = frozenset()
    alike: bool = False

    @property
    def mixed(self) -> bool:
        """Whether an element may depend on several rows of the batch."""
        return not (self.axes or self.alike)


def results_of(func: Any, given: Sequence[Rows], rows: int) -> list[Rows]:
    """What is known of a program's results. given: of its inputs, its first parameters."""
    made = func.params[len(given) :]
    if func.attrs and ROWS_APART in func.attrs:
        return [_apart(given, int(func.attrs[ROWS_APART]))]
    try:
        claims = _Claims(func, given, rows)
    except OpaqueError:
        return [Rows() for _ in made]
    claims.drop_all_false()
    return [claims.of(buffer) for buffer in made]


def _apart(given: Sequence[Rows], axis: int) -> Rows:
    """What is known of the result of a program that is marked to keep samples apart."""
    first, *others = given
    if not all(one.alike for one in others):
        return Rows()
    axes = (Along(axis, along.steps) for along in first.axes if along.axis == 0)
    return Rows(frozenset(axes), first.alike)


class _Claims:
    """The claims about each tensor of a program.

    A tensor that is made inside loops has one more axis in front for each of these. extents: of the
    loops. alike: the tensors claimed not to depend on the batch.
    """

    def __init__(self, func: Any, given: Sequence[Rows], rows: int) -> None:
        program = Stores(func)
        self.rows, self.extents = rows, program.extents
        self._stores, self._around = program.all, program.around
        self._axes = {p: set(one.axes) for p, one in zip(func.params, given, strict=False)}
        self.alike = {p for p, one in zip(func.params, given, strict=False) if one.alike}
        self._row_of: dict[tuple[Any, int], _Row] = {}
        for buffer in {store.buffer for store in self._stores}:
            self.alike.add(buffer)
            self._axes[buffer] = all_along(self.shape(buffer), rows)

    def of(self, buffer: Any) -> Rows:
        """The claims that are left for a parameter."""
        return Rows(frozenset(self._axes[buffer]), buffer in self.alike)

    def axes_of(self, buffer: Any) -> set[Along]:
        """The ways in which a tensor is claimed to have rows."""
        return self._axes.get(buffer, set())

    def shape(self, buffer: Any) -> tuple[int, ...]:
        """The extents of a tensor, after those of the loops that it is made in."""
        around = self._around.get(buffer, ())
        return (*(self.extents[loop] for loop in around), *shape_of(buffer))

    def place(
        self, buffer: Any, indices: Sequence[Any], moved: Callable[[Any], Any] = lambda var: var
    ) -> tuple[Any, ...]:
        """The place of an element in a tensor. moved: maps a loop to what stands for it."""
        return (*map(moved, self._around.get(buffer, ())), *indices)

    def drop_all_false(self) -> None:
        """Drop claims that a store does not keep, until every store keeps all that are left."""
        dropped = 1
        while dropped:
            dropped = sum(map(self._drop_false, self._stores))  # in program order: few rounds

    def _drop_false(self, store: Store) -> bool:
        """Drop the claims that a store does not keep; whether there were any."""
        read = (store.value, *store.indices, *store.guards)
        axes = self._axes[store.buffer]
        false = {along for along in axes if not self._is_kept(store, along)}
        axes -= false
        if store.buffer in self.alike and not self._is_alike(read):
            self.alike.remove(store.buffer)
            return True
        return bool(false)

    def _is_alike(self, read: Sequence[Any]) -> bool:
        return all(var in self.extents or var in self.alike for var in variables(read))

    def _is_kept(self, store: Store, along: Along) -> bool:
        """Whether a store to row n depends only on row n of what it reads, and on what is alike."""
        place = self.place(store.buffer, store.indices)[along.axis]
        loops = sorted(variables([place]) & self.extents.keys(), key=lambda loop: loop.name)
        ways = all_along((self.extents[loop] for loop in loops), self.rows)
        return any(self._row(loops[at], steps).keeps(store, along) for at, steps in sorted(ways))

    def _row(self, loop: Any, steps: int) -> _Row:
        if (loop, steps) not in self._row_of:
            self._row_of[loop, steps] = _Row(self, loop, steps)
        return self._row_of[loop, steps]


class _Row:
    """One row of the batch: a loop is fixed to it, and expressions are simplified there.

    steps: the steps that a row has in the loop.
    """

    def __init__(self, claims: _Claims, loop: Any, steps: int) -> None:
        self._claims, self._loop = claims, loop
        kind, rows = loop.ty.dtype, claims.rows
        again, self._row, step = (tirx.Var(name, kind) for name in ("again", "row", "step"))
        self._here = (again * rows + self._row) * steps + step
        others = {var: n for var, n in claims.extents.items() if not var.same_as(loop)}
        same = {**others, step: steps, again: claims.extents[loop] // rows // steps}
        self._analyzer = sym.Analyzer()
        for var, extent in {**same, self._row: rows}.items():
            self._analyzer.bind(var, tvm.ir.Range(0, extent))
        self._of_row = set(same)  # variables equal in all rows, or of the row's own numbers

    def keeps(self, store: Store, along: Along) -> bool:
        """Whether the store writes to this row, and the stored value depends on this row alone."""
        place = self._claims.place(store.buffer, store.indices)
        if not self._is_in_row(self._at(place[along.axis]), along.steps):
            return False
        if not self._is_here(along, [self._at(one) for one in place]):
            return False
        return all(self._is_free(self._at(one)) for one in (store.value, *store.guards))

    def _at(self, expr: Any) -> Any:
        """An expression with the row and step in place of the loop, and variables for loads."""
        here = structural_map(expr, (tvm.ir.Var, self._moved))
        return structural_map(here, (tvm.ir.TensorLoad, self._loaded))

    def _moved(self, var: Any) -> Any:
        return self._here if var.same_as(self._loop) else var

    def _loaded(self, load: Any) -> Any:
        """A variable for a load: one of the row's own numbers if it reads from this row alone."""
        place = self._claims.place(load.source, load.indices, self._moved)
        made = tirx.Var("loaded", load.ty.dtype)
        alike = load.source in self._claims.alike and all(map(self._is_free, place))
        axes = self._claims.axes_of(load.source)
        if alike or any(self._is_here(along, place) for along in axes):
            self._of_row.add(made)
        return made

    def _is_here(self, along: Along, place: Sequence[Any]) -> bool:
        """Whether a place in a tensor is in this row, and at the same place within every row."""
        others = (one for at, one in enumerate(place) if at != along.axis)
        return all(map(self._is_free, others)) and self._is_in_row(place[along.axis], along.steps)

    def _is_in_row(self, index: Any, steps: int) -> bool:
        if not self._is_free(index - self._row * steps):
            return False
        return bool(self._analyzer.can_prove_equal(index // steps % self._claims.rows, self._row))

    def _is_free(self, expr: Any) -> bool:
        """Whether an expression is equal in all rows, or depends only on the row's own numbers."""
        if not (others := variables([expr]) - self._of_row):
            return True
        if others != {self._row}:
            return False
        return variables([self._analyzer.simplify(expr)]) <= self._of_row
