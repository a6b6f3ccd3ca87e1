"""Prove of the programs that each row of a batch depends on that row alone, and all rows alike.

    y[n, i] = x[n, i] * w[i]        row n of the result depends on row n of the input
    y[n, i] = x[n, i] - x[0, i]     does not: a batch of two is not two batches of one

A tensor has rows along an axis if each row is a stretch of that axis: in (8, 64) along axis 0, each
of one step, and in (512, 64), for 8 images of 64 pixels, each of 64 steps. For the model's inputs
it is known which axis has rows. For all other tensors it is claimed of every axis that has as many
stretches, and claims are dropped until each store keeps those that are left (`row_claims.py`). A
claim that is left is true: every store that came before keeps it, too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ..._tvm import bindings, elements, op_name, relax, shape_of, tvm
from ...errors import ModelError
from ..graph.places import Place
from .concatenation import OPERATOR
from .importer import Imported
from .labels import calls
from .row_claims import Along, Rows, all_along, results_of

ALIKE = Rows(alike=True)
Known = dict[Any, Any]  # for each variable its Rows, or a list of Rows for the fields of a tuple


def check_rows(imported: Imported, rows: int, batched: Collection[str]) -> None:
    """ModelError that names a node which mixes rows of a batch, or an output without rows.

    imported: the model in one shape. rows: of its batch. batched: the inputs with rows along their
    first axis; the others are the same for all rows.
    """
    main = imported.mod["main"]
    known: Known = {
        var: Rows(_first(info.shape, rows)) if info.name in batched else ALIKE
        for var, info in zip(main.params, imported.inputs, strict=True)
    }
    mixing = _mixing(imported, known, rows)
    results = known[main.body.body]
    results = results if isinstance(results, list) else [results]
    for info, result in zip(imported.interfaces[0].outputs, results, strict=True):
        if _first(info.shape, rows) <= result.axes and not info.lengths:
            continue
        if result.mixed and mixing:
            raise _refused(f"node {mixing} reads several rows of the batch at once")
        raise _refused(f"output '{info.name}' has no row for each of the batch, on its first axis")


def _mixing(imported: Imported, known: Known, rows: int) -> str:
    """The first node that mixes rows; "" if none does. known: gets the rows of all variables."""
    mod, done, found = imported.mod, dict[Any, list[Rows]](), ""
    places = (place for _, place in calls(imported))
    for one in bindings(mod["main"]):
        if op_name(one.value) != "relax.call_tir":
            known[one.var] = _of(one.value, known, rows)
            continue
        name, *given = one.value.args[0], *(_of(a, known, rows) for a in one.value.args[1])
        key, place = (name.name_hint, *given), next(places)
        if key not in done:
            done[key] = results_of(mod[name], given, rows)
        made = done[key]
        if not found and any(each.mixed for each in made):
            found = _text(place)
        known[one.var] = made if len(made) > 1 else made[0]
    return found


def _of(value: Any, known: Known, rows: int) -> Any:
    """The Rows of a value: a variable, a constant, a concatenation, a field or a tuple."""
    if isinstance(value, tvm.ir.GenericConst):
        return Rows(_repeated(elements(value), rows), alike=True)
    if isinstance(value, relax.TupleGetItem):
        return known[value.tuple_value][value.index]
    if isinstance(value, relax.Tuple):
        return [_of(one, known, rows) for one in value.fields]
    if op_name(value) == "relax.call_pure_packed" and value.args[0].global_symbol == OPERATOR:
        return _joined(value, [_of(one, known, rows) for one in value.args[1:]])
    return known[value] if value in known else Rows()


def _joined(call: Any, parts: Sequence[Rows]) -> Rows:
    """The Rows of a concatenation: what all parts share, except along its axis."""
    made, given = shape_of(call.ty), [shape_of(one.ty) for one in call.args[1:]]
    axes = frozenset.intersection(*(part.axes for part in parts))
    whole = {a for a, extent in enumerate(made) if all(shape[a] == extent for shape in given)}
    kept = frozenset(along for along in axes if along.axis in whole)
    return Rows(kept, all(part.alike for part in parts))


def _first(shape: Sequence[int], rows: int) -> frozenset[Along]:
    """The claim that rows are outermost in the first axis."""
    return frozenset([Along(0, shape[0] // rows if shape else 0)])


def _repeated(values: np.ndarray, rows: int) -> frozenset[Along]:
    """The ways in which a constant has rows that are all equal."""
    ways = all_along(values.shape, rows)
    return frozenset(along for along in ways if _repeats(values, along, rows))


def _repeats(values: np.ndarray, along: Along, rows: int) -> bool:
    parts = np.moveaxis(values, along.axis, 0).reshape(-1, rows, *_rest(values, along))
    return all(np.array_equal(parts[:, 0], parts[:, row]) for row in range(1, rows))


def _rest(values: np.ndarray, along: Along) -> tuple[int, int]:
    return along.steps, values.size // values.shape[along.axis]


def _text(place: Place) -> str:
    return ", ".join(f"{one.name} ({one.op})" for one in place.nodes)


def _refused(why: str) -> ModelError:
    return ModelError(
        f"a range of batches needs rows that are computed independently, and {why}",
        "give --input-shape the sizes that are needed one by one, as NAME=1,... NAME=4,...",
    )
