"""Find the nodes of a graph that cannot be compiled, and name them, before TVM is imported."""

from collections.abc import Iterable, Iterator

from onnx import ModelProto, NodeProto, inliner

from ...errors import ModelError
from ...system.printable import printable
from ..graph.cleanup import drop_dead
from ..graph.graph import Graph
from ..onnx.bind import model_inputs
from ..onnx.skeleton import domain_of, name_of, uses, with_nested
from .blame import importing
from .causes import Fault, without_consequences
from .operator import Operator, Use, dtype_name
from .refused import DOMAINS, REASONS
from .table import find

_SHOWN = 4  # nodes of an operator that a refusal lists


def refuse_early(proto: ModelProto) -> None:
    """ModelError for what cannot be compiled, whatever shapes the model's inputs get.

    Nodes that no output needs may be anything. Nodes of nested graphs are left to `refuse`, since a
    branch may be dropped, and so are nodes that compute only with constants, which are folded.
    """
    graph = Graph.of(inliner.inline_local_functions(proto) if proto.functions else proto)
    drop_dead(graph)
    graph.infer(check_types=True)
    _refuse(graph, _of_inputs(graph), folded=False)


def _of_inputs(graph: Graph) -> Iterator[NodeProto]:
    """The nodes that compute with an input of the model, or with what was computed from one."""
    computed = {value.name for value in model_inputs(graph.proto)}
    for node in graph.nodes:
        if not computed.isdisjoint(uses(node)):
            computed.update(node.output)
            yield node


def refuse(graph: Graph) -> None:
    """ModelError that lists every node that cannot be compiled, in nested graphs too.

    graph: with static shapes, and its constants folded.
    """
    _refuse(graph, with_nested(graph.nodes), folded=True)


def _refuse(graph: Graph, every: Iterable[NodeProto], *, folded: bool) -> None:
    found = (_fault(graph, node, folded=folded) for node in every)
    bad = without_consequences(graph.nodes, [fault for fault in found if fault.text])
    if not bad:
        return
    opsets = {entry.domain or "ai.onnx": entry.version for entry in graph.proto.opset_import}
    outer = {id(one): node for node in graph.nodes for one in with_nested([node])}
    rows: dict[str, list[str]] = {}
    for fault in bad:
        row = _row(fault, outer.get(id(fault.node), fault.node), opsets)
        rows.setdefault(fault.node.op_type, []).append(row)
    raise ModelError(
        f"the model uses {len(rows)} unsupported operator(s):\n"
        + "\n".join(row for several in rows.values() for row in _first(several)),
        "replace them in the exporting framework, or cut the graph before them; "
        "docs/operators.md lists what is compiled",
    )


def _first(rows: list[str]) -> list[str]:
    """The first rows of an operator, and how many more there are: a loop may hold hundreds."""
    more = len(rows) - _SHOWN
    return rows if more < 2 else [*rows[:_SHOWN], f"  and {more} more like it"]


def _row(fault: Fault, outer: NodeProto, opsets: dict[str, int]) -> str:
    """A row of the refusal. outer: the node of the graph that holds the faulty one, or is it."""
    node = fault.node
    domain = domain_of(node) or "ai.onnx"
    within = "" if outer is node else f", inside {outer.op_type} {name_of(outer)}"
    place = f"{name_of(node)}{within}  ({domain} {opsets.get(domain, '?')})"
    return printable(f"  {node.op_type}  at node {place}: {fault.text}")


def _fault(graph: Graph, node: NodeProto, *, folded: bool) -> Fault:
    """Why a node cannot be compiled; a fault without text if it can."""
    operator = find(node)
    if operator is None:
        reason = REASONS.get(node.op_type, "not supported")
        return Fault(node, DOMAINS.get(domain_of(node), reason))
    if not operator.domain and graph.opset < operator.since:
        return Fault(node, f"supported from opset {operator.since} on")
    with importing(node.op_type, name_of(node)):
        use = Use(graph, node)
        if text := _wrong_type(graph, node, operator) or _beyond(use, operator):
            return Fault(node, text)
        return _inconstant(use, node, operator) if folded else Fault(node, "")


def _wrong_type(graph: Graph, node: NodeProto, operator: Operator) -> str:
    names = [name for name in (*node.input, *node.output) if name]
    found = (dtype_name(graph.dtypes.get(name, 0)) for name in names)
    wrong = next((dtype for dtype in found if dtype and dtype not in operator.types), None)
    return f"not supported in {wrong}" if wrong else ""


def _beyond(use: Use, operator: Operator) -> str:
    broken = (limit for limit in operator.limits if limit.broken(use))
    return next((f"only where {limit.text}" for limit in broken), "")


def _inconstant(use: Use, node: NodeProto, operator: Operator) -> Fault:
    """The fault of an input that has to be a constant but is not."""
    for index in operator.constant:
        name = use.input(index)
        outer = name in use.graph.shapes or name in use.graph.dtypes  # else it is in a nested graph
        if outer and use.graph.value(name) is None:
            return Fault(node, f"its input '{name}' must be a constant", name)
    return Fault(node, "")
