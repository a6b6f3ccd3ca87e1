"""What is declared about an ONNX operator: types, limits, and how it is compiled."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from onnx import NodeProto, TensorProto

from ..graph.graph import Graph, optional_input
from ..onnx.skeleton import attribute

if TYPE_CHECKING:
    from .converting import Call
    from .emitter import Emitter

REAL = frozenset(("float16", "bfloat16", "float32", "float64"))
INTEGER = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
ANY = REAL | INTEGER | {"bool"}

Convert = Callable[["Call"], Any]
Expand = Callable[["Emitter"], "str | Sequence[str] | None"]
Rewrite = Callable[[Graph, NodeProto], "list[NodeProto] | None"]


class Use:
    """A use of an operator: a node in its graph."""

    def __init__(self, graph: Graph, node: NodeProto) -> None:
        self.graph, self.node = graph, node

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute's value; bytes are decoded to a string."""
        return attribute(self.node, name, default)

    def input(self, index: int) -> str:
        """The name of an input, empty if the node does not have it."""
        return optional_input(self.node, index)


@dataclass(frozen=True)
class Limit:
    """Where the support of an operator ends.

    text: a sentence for users on what is compiled, or what is not. broken: whether a node
    exceeds it.
    """

    text: str
    broken: Callable[[Use], Any]


def in_branch(use: Use) -> bool:
    """Whether the node is in a branch that only a run chooses: TVM imports these unchanged."""
    return all(use.node is not node for node in use.graph.nodes)


@dataclass(frozen=True)
class Operator:
    """An operator that can be compiled.

    domain: "" is ONNX's own. since: the first opset for which it is compiled. types: of all the
    tensors that it reads and makes. constant: the inputs that must be constants once constants are
    folded.

    It is compiled by one of three functions, or by TVM's own converter if all are None. convert: to
    a Relax expression. expand: emits nodes that compute the same, and returns their outputs; an
    empty name stands for an output that nothing may read. rewrite: returns such nodes, in ONNX.
    None as a result of expand or rewrite leaves the node as it is.
    """

    name: str
    domain: str = ""
    since: int = 1
    types: Collection[str] = ANY
    constant: tuple[int, ...] = ()
    limits: tuple[Limit, ...] = ()
    convert: Convert | None = None
    expand: Expand | None = None
    rewrite: Rewrite | None = None


contrib = partial(Operator, domain="com.microsoft")  # those that ONNX Runtime's optimiser writes


def choice(name: str, default: Any, *values: Any) -> Limit:
    """The limit that an attribute has one of these values."""
    listed = " or ".join(map(str, values))
    return Limit(f"`{name}` is {listed}", lambda use: use.attribute(name, default) not in values)


def dtype_name(element: int) -> str | None:
    """The name of an ONNX element type in NumPy's spelling; None if it is not known."""
    if not element:
        return None
    if element not in TensorProto.DataType.values():
        return f"element type {element}"
    name = TensorProto.DataType.Name(element).lower()
    return {"float": "float32", "double": "float64"}.get(name, name)
