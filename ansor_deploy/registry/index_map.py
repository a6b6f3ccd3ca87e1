"""Check index maps in foreign traces: TVM's JSON graph of IR may contain index arithmetic alone.

A layout is changed by a map such as (i, j) -> (i // 4, j, i % 4). Padding, where the new layout has
no element, is a map to one constant, (i, j, k) -> 0. TVM writes both as serialised IR, and would
load any other object from there as well.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from ..system.checks import INT32, is_int
from ..system.untrusted import Refused, exactly, quoted, refuse

MOST_CHARACTERS = 32_768
MOST_NODES = 512
MOST_INDICES = 32
# Of the expression written out: nodes may be shared, so a small graph can mean a huge expression.
MOST_TERMS = 4096

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,40}")
_EXPRESSION = "var number term"
# Element types of tensors that indices do not have.
_ELEMENT = re.compile(r"bool|bfloat16|float(16|32|64)|u?int(8|16)|uint(32|64)")
_TYPED = {"span": "none", "ty": "type"}
_PAIR = {**_TYPED, "a": _EXPRESSION, "b": _EXPRESSION}
_DIVISION = {**_PAIR, "b": "number"}
_MAP = {
    "initial_indices": "variables",
    "final_indices": "variables expressions padding",
    "inverse_index_map": "none map",
}

# For each type of node, what it counts as, and what each of its fields may refer to.
_FORMS = {
    "ir.Var": ("var", {**_TYPED, "name": "name"}),
    "ir.IntImm": ("number", {**_TYPED, "value": "int"}),
    "prim.Cast": ("term", {**_TYPED, "value": _EXPRESSION}),
    "prim.Add": ("term", _PAIR),
    "prim.Mul": ("term", _PAIR),
    "prim.FloorDiv": ("term", _DIVISION),
    "prim.FloorMod": ("term", _DIVISION),
    "tirx.IndexMap": ("map", _MAP),
}


@dataclass(frozen=True)
class _Node:
    """What a node counts as, its size when written out, and its free variables.

    value: that of an int node, and of the number node that holds it.
    """

    kind: str
    terms: int = 1
    variables: frozenset[int] = frozenset()
    value: int = 0


def check_index_map(text: str) -> None:
    """Refused unless the text is an index map of plain arithmetic on its own indices."""
    refuse(_root(text).kind != "map", "serialised IR is not an index map")


def check_padding(text: str) -> None:
    """Refused unless the text is a map to one constant, of any type."""
    root = _root(text)
    constant = root.kind in ("map", "padding") and not root.variables
    refuse(not constant, "what fills a layout is no constant")


def _root(text: str) -> _Node:
    """The root node of a serialised map; Refused if the text is not a graph of allowed nodes."""
    refuse(len(text) > MOST_CHARACTERS, "an index map is too long")
    try:
        graph = json.loads(text, object_pairs_hook=_single)
    except RecursionError:
        raise Refused("an index map is nested too deeply") from None
    except Refused:
        raise
    except ValueError:
        raise Refused(f"{quoted(text)} is not an index map") from None
    exactly(graph, "root_index", "nodes", "metadata")
    exactly(graph["metadata"], "tvm_version")
    nodes = graph["nodes"]
    refuse(not isinstance(nodes, list) or len(nodes) > MOST_NODES, "an index map has no nodes")
    known: list[_Node] = []
    for position, node in enumerate(nodes):
        known.append(_node(position, node, known))
    refuse(not is_int(graph["root_index"], 0, len(known) - 1), "an index map has no root")
    return known[graph["root_index"]]


def _single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    refuse(len(found) != len(pairs), "an index map has a field twice")
    return found


def _node(position: int, node: Any, known: list[_Node]) -> _Node:
    refuse(not isinstance(node, dict), "an index map's node is no object")
    name, data = node.get("type"), node.get("data")
    if name == "None":
        exactly(node, "type")
        return _Node("none")
    exactly(node, "type", "data")
    if name == "ir.PrimType":
        exactly(data, "span", "dtype")
        index = data["dtype"] in ("int32", "int64")
        element = isinstance(data["dtype"], str) and _ELEMENT.fullmatch(data["dtype"])
        refuse(not index and not element, f"an index is a {quoted(data['dtype'])}")
        _refer(data["span"], known, "none")
        return _Node("type" if index else "element")
    if name == "ffi.String":
        refuse(not isinstance(data, str) or not _NAME.fullmatch(data), f"name {quoted(data)}")
        return _Node("name")
    if name == "int":
        refuse(not is_int(data, 0, INT32), f"an index map counts to {quoted(data)}")
        return _Node("int", value=data)
    if name == "ffi.Array":
        return _array(data, known)
    return _object(position, name, data, known)


def _array(data: Any, known: list[_Node]) -> _Node:
    refuse(not isinstance(data, list) or len(data) > MOST_INDICES, "too many indices")
    if len(data) == 1 and is_int(data[0], 0, len(known) - 1) and known[data[0]].kind == "constant":
        return _Node("padding")
    items = [_refer(item, known, _EXPRESSION) for item in data]
    kind = "variables" if all(item.kind == "var" for item in items) else "expressions"
    return _joined(kind, items)


def _object(position: int, name: Any, data: Any, known: list[_Node]) -> _Node:
    if name in ("ir.FloatImm", "ir.IntImm") and _has_element_type(data, known):
        return _constant(data, known)
    refuse(not isinstance(name, str) or name not in _FORMS, f"IR of type {quoted(name)}")
    kind, fields = _FORMS[name]
    exactly(data, *fields)
    parts = {field: _refer(data[field], known, fields[field]) for field in fields}
    if kind == "var":
        return _Node("var", variables=frozenset([position]))
    if kind == "number":
        return _Node("number", value=parts["value"].value)
    if fields is _DIVISION:
        refuse(parts["b"].value == 0, "an index map divides by zero")
    if kind == "map":
        own = parts["initial_indices"].variables
        refuse(not parts["final_indices"].variables <= own, "an index map uses a foreign variable")
        padding = parts["final_indices"].kind == "padding"
        final = [parts["final_indices"], parts["inverse_index_map"]]
        return _joined("padding" if padding else kind, final)
    return _joined(kind, list(parts.values()))


def _has_element_type(data: Any, known: list[_Node]) -> bool:
    at = data.get("ty", -1) if isinstance(data, dict) else -1
    return is_int(at, 0, len(known) - 1) and known[at].kind == "element"


def _constant(data: Any, known: list[_Node]) -> _Node:
    """A constant of a type that no index has: a float is inline, an integer is in an own node."""
    exactly(data, "span", "ty", "value")
    _refer(data["span"], known, "none")
    if not isinstance(data["value"], float):
        _refer(data["value"], known, "int")
    return _Node("constant")


def _joined(kind: str, parts: list[_Node]) -> _Node:
    terms = 1 + sum(part.terms for part in parts)
    refuse(terms > MOST_TERMS, "an index map spells an expression without end")
    return _Node(kind, terms, frozenset().union(*(part.variables for part in parts)))


def _refer(position: Any, known: list[_Node], kinds: str) -> _Node:
    """The node at a position, which must be an earlier one, so that there are no cycles."""
    if not is_int(position, 0, len(known) - 1):
        raise Refused(f"node {quoted(position)} comes later or never")
    node = known[position]
    first, *others = kinds.split()
    refuse(node.kind not in (first, *others), f"an index map has {node.kind} for {first}")
    return node
