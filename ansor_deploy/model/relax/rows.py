"""Is each row of a batch computed from that row alone, and all alike? Proved of the programs.

    y[n, i] = x[n, i] * w[i]        row n of what is written hangs on row n of what is read
    y[n, i] = x[n, i] - x[0, i]     does not: a batch of two is not two batches of one

A tensor has rows along an axis where each row is a stretch of it: in (8, 64) along axis 0, each
one step, and in (512, 64), as 8 images of 64 pixels, each 64 steps. What an axis of the first
tensor means is known of the model's inputs; of all others it is claimed, for every axis that has
as many stretches, and claims are dropped until each store keeps those that are left
(`row_claims.py`). What was stored before kept them, too, so that those that stay are true.
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
Known = dict[Any, Any]  # Rows of a variable, or a list of them: of each part of a tuple


def check_rows(imported: Imported, rows: int, batched: Collection[str]) -> None:
    """ModelError that names the nodes which mix rows of a batch, or the output that has none.

    imported: the model in one shape. rows: of its batch. batched: the inputs with rows along their
    first axis; others are the same for all rows.
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
    """What is known of a value: a variable, a constant, a concatenation, a part or a tuple."""
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
    """What is known of a concatenation: what is of all its parts, but for the axis of it."""
    made, given = shape_of(call.ty), [shape_of(one.ty) for one in call.args[1:]]
    axes = frozenset.intersection(*(part.axes for part in parts))
    whole = {a for a, extent in enumerate(made) if all(shape[a] == extent for shape in given)}
    kept = frozenset(along for along in axes if along.axis in whole)
    return Rows(kept, all(part.alike for part in parts))


def _first(shape: Sequence[int], rows: int) -> frozenset[Along]:
    """That rows are outermost in the first axis."""
    return frozenset([Along(0, shape[0] // rows if shape else 0)])


def _repeated(values: np.ndarray, rows: int) -> frozenset[Along]:
    """How a constant has rows that are all the same."""
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
        f"a range of batches takes rows that are computed apart, and {why}",
        "give --input-shape the sizes that are needed one by one, as NAME=1,... NAME=4,...",
    )
