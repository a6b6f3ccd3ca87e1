"""Labels: variables of an imported module are named after the tensors that they hold.

The last variable named "t7_" holds the tensor with the number seven; the variables of that name
before it are steps towards it, and "t7_f" is the same tensor in another form, such as channels
last. Passes keep the names, or are made to (`dataflow.Walk`, `fused`). So for every kernel it is
known which of the model's tensors it reads and makes, and which nodes lie between.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._tvm import bindings, elements, op_name, relax, structural_map, tvm
from ...runtime.functions import main_names
from ..graph.nodes import Origin, PlacedCall
from ..graph.places import Node, Place

if TYPE_CHECKING:
    from ...registry.record import TaskKey
    from ..tasks import Task
    from .importer import Imported

_LABEL = re.compile(r"(t(\d+)_f?)\d*")


def label(name: str) -> str:
    """A variable's label, without what makes its name unique; "" if it has none."""
    found = _LABEL.fullmatch(name)
    return found[1] if found else ""


def form_of(known: str) -> str:
    """The label of another form of a tensor. known: the tensor's label, or "" for none."""
    return known and f"{known.removesuffix('f')}f"


def _number(known: str) -> int:
    """The number of a label's tensor."""
    return int(known.removesuffix("f")[1:-1])


def with_labels(mod: tvm.IRModule, origin: Origin, values: Mapping[str, Any]) -> tvm.IRModule:
    """The front end's module with variables named. values: of the graph's tensors, by name."""
    known: dict[Any, Any] = {}
    for one in bindings(mod["main"]):
        known[one.var] = known[one.value] = one.var
    names = {
        known.get(values.get(name)): f"t{at}_"
        for at, name in enumerate(origin.tensors)
        if name in values
    }
    return _renamed(mod, lambda var: names.get(var, ""))


def fused(mod: tvm.IRModule) -> tvm.IRModule:
    """The module after TVM's fusion, whose new variables for groups get their labels again."""
    terms, names = _Terms(), defaultdict(list)
    for var, term in terms.of(mod).items():
        names[term].append(label(var.name))
    made = relax.transform.FuseOps()(mod)
    after = terms.of(made)
    return _renamed(made, lambda var: _next(names[after[var]]))


def _next(names: list[str]) -> str:
    """Take the first of the names; a value that is computed twice has two names, in order."""
    return names.pop(0) if names else ""


def placed(tasks: Mapping[str, Task], called: Iterable[PlacedCall]) -> dict[str, Task]:
    """The tasks of functions, with the places where the model computes them."""
    places: dict[TaskKey, list[Place]] = defaultdict(list)
    for function, place in called:
        if function in tasks:
            places[tasks[function].key].append(place)
    made = {one.key: replace(one, places=tuple(places[one.key])) for one in tasks.values()}
    return {function: made[task.key] for function, task in tasks.items()}


def calls(imported: Imported) -> Iterator[PlacedCall]:
    """Each call of a kernel, in order: the function's name, and its place in the model."""
    for at, (name, origin) in enumerate(
        zip(main_names(len(imported.origins)), imported.origins, strict=True)
    ):
        for function, nodes in _Reading(imported.mod[name], origin).calls():
            yield function, Place(at, nodes)


def _renamed(mod: tvm.IRModule, name: Callable[[Any], str]) -> tvm.IRModule:
    """The module with new names for variables of `main`; those with "" keep their own."""
    new: dict[Any, Any] = {}
    for one in bindings(mod["main"]):
        if found := name(one.var):
            new[one.var] = type(one.var)(found, one.var.ty)
    replace = lambda var: new.get(var, var)  # noqa: E731
    mod["main"] = structural_map(mod["main"], (relax.Var, replace), order="pre")
    return mod


class _Reading:
    """A graph of calls, and the tensors that its variables hold.

    A variable that holds no tensor of the model is a step towards the one in its label, or else
    towards those made from it.
    """

    def __init__(self, main: Any, origin: Origin) -> None:
        self._origin, self._bindings = origin, bindings(main)
        held = self._held(main.body.body)
        self._towards = {var: {name} for var, name in {**self._labels(), **held}.items()}
        for one in reversed(self._bindings):
            self._look_ahead(one.var, one.value, held)
        self._from = {var: {name} for var, name in zip(main.params, origin.inputs, strict=True)}
        for one in self._bindings:
            self._from[one.var] = {held[one.var]} if one.var in held else self._read(one.value)

    def calls(self) -> Iterator[tuple[str, tuple[Node, ...]]]:
        """The function's name and the model's nodes, for each call of a kernel, in order."""
        for one in self._bindings:
            if op_name(one.value) == "relax.call_tir":
                nodes = self._origin.between(self._read(one.value), self._towards[one.var])
                yield one.value.args[0].name_hint, nodes

    def _held(self, result: Any) -> dict[Any, str]:
        """The tensors that variables hold, by their labels, and as results of the model."""
        values = {one.var: one.value for one in self._bindings}
        results = list(_variables(values.get(result, result)))
        outputs = self._origin.outputs
        named = zip(results if len(results) == len(outputs) else [result], outputs, strict=False)
        last = {label(var.name): var for var in values}  # the last variable of each label
        known = self._labels().items()
        held = {v: t for v, t in known if (one := label(v.name)).endswith("f") or last[one] == v}
        return held | dict(named)

    def _labels(self) -> dict[Any, str]:
        """The tensors of all variables with a label."""
        labels = {one.var: label(one.var.name) for one in self._bindings}
        return {var: self._origin.tensors[_number(one)] for var, one in labels.items() if one}

    def _look_ahead(self, var: Any, value: Any, held: Mapping[Any, str]) -> None:
        """Note the tensors that unlabelled operands lead to: those of a reader, or of all parts."""
        ahead = self._towards.setdefault(var, set())
        is_part = isinstance(value, relax.TupleGetItem)
        for one in _variables(value):
            if one not in held and not label(one.name):
                self._towards[one] = ahead | (self._towards.get(one, set()) if is_part else set())

    def _read(self, value: Any) -> set[str]:
        return {name for one in _variables(value) for name in self._from[one]}


def _variables(value: Any) -> Iterator[Any]:
    """The variables that a value is made of."""
    if isinstance(value, relax.Var):
        yield value
    else:
        yield from (var for part in _parts(value) for var in _variables(part))


class _Terms:
    """A number for each variable, equal for equal calls of equal operands.

    Groups of operators are looked into, as if their operators stood in `main`.
    """

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._fields: dict[int, list[int]] = {}  # for the number of a tuple: those of its fields

    def of(self, mod: tvm.IRModule) -> dict[Any, int]:
        """The terms of the variables in a module's `main`."""
        main = mod["main"]
        known = {var: self._number("param", at) for at, var in enumerate(main.params)}
        self._walk(main, mod, known)
        return known

    def _walk(self, function: Any, mod: tvm.IRModule, known: dict[Any, int]) -> int:
        for one in bindings(function):
            known[one.var] = self._term(one.value, mod, known)
        return self._term(function.body.body, mod, known)

    def _term(self, value: Any, mod: tvm.IRModule, known: dict[Any, int]) -> int:
        parts = [self._term(part, mod, known) for part in _parts(value)]
        if value in known:
            return known[value]
        if isinstance(value, tvm.ir.GenericConst):
            return self._number("constant", elements(value).ctypes.data)
        if isinstance(value, relax.TupleGetItem) and parts[0] in self._fields:
            return self._fields[parts[0]][value.index]
        group = mod[value.op] if isinstance(getattr(value, "op", None), tvm.ir.GlobalVar) else None
        if group is not None and (group.attrs or {}).get("Primitive"):
            return self._walk(group, mod, dict(zip(group.params, parts, strict=True)))
        name = op_name(value) if isinstance(value, relax.Call) else type(value).__name__
        found = self._number(name, *parts, "" if parts else str(value))
        if isinstance(value, relax.Tuple):
            self._fields[found] = parts
        return found

    def _number(self, *what: Any) -> int:
        return self._numbers.setdefault(what, len(self._numbers))


def _parts(value: Any) -> list[Any]:
    if isinstance(value, relax.TupleGetItem):
        return [value.tuple_value]
    return list(value.args) if isinstance(value, relax.Call) else list(getattr(value, "fields", ()))
