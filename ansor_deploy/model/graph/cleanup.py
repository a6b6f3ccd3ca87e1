"""Passes that drop what does nothing at inference, split variadic nodes, and sort the rest."""

from collections.abc import Collection

from onnx import NodeProto, TensorProto, helper

from ..onnx.order import order
from ..onnx.skeleton import attribute, uses
from .graph import Graph, is_op

_MOST_CONCATENATED = 64  # inputs of a Concat; TVM and Python have limits of some hundreds
_CHAINED = {"Sum": "Add", "Max": "Max", "Min": "Min"}


def drop_dead(graph: Graph) -> None:
    """Remove nodes and constants that no output depends on."""
    producers = graph.producers()
    alive = set(graph.output_names)
    wanted = list(alive)
    while wanted:
        node = producers.get(wanted.pop())
        if node is not None:
            new = uses(node) - alive
            alive |= new
            wanted.extend(new)
    graph.nodes = [n for n in graph.nodes if any(name in alive for name in n.output)]
    graph.constants = {name: t for name, t in graph.constants.items() if name in alive}
    graph.room.keep_only(graph.constants)


def sort_nodes(graph: Graph) -> None:
    """Put producers before consumers; otherwise the order stays as it is."""
    graph.nodes = [graph.nodes[at] for at in order(graph.nodes)]


def drop_identity(graph: Graph) -> None:
    """Remove Identity, Cast to the same type and Sum of one input: readers get the input."""
    captured = graph.captured()
    kept = captured | graph.output_names
    named = [node for node in graph.nodes if _is_identity(graph, node)]
    sources = {n.output[0]: n.input[0] for n in named if n.output[0] not in kept}
    graph.nodes = [n for n in graph.nodes if not n.output or n.output[0] not in sources]
    origins = {name: _origin(name, sources) for name in sources}
    graph.rename_uses(origins)
    for name, origin in origins.items():
        graph.aliases.setdefault(origin, name)
    for node in named:
        if node.output[0] in graph.output_names - captured:
            _make_by_name(graph, node, captured)


def drop_round_trips(graph: Graph) -> None:
    """Let readers of a Reshape to another shape and back read the tensor before both."""
    producers, shapes = graph.producers(), graph.shapes
    for node in [one for one in graph.nodes if is_op(one, "Reshape")]:
        there, made = producers.get(node.input[0]), shapes.get(node.output[0])
        if there is not None and is_op(there, "Reshape") and made == shapes.get(there.input[0], ()):
            graph.replace(node, [helper.make_node("Identity", there.input[:1], node.output)])


def _origin(name: str, sources: dict[str, str]) -> str:
    while name in sources:
        name = sources[name]
    return name


def _is_identity(graph: Graph, node: NodeProto) -> bool:
    if is_op(node, "Cast"):
        known = graph.dtypes.get(node.input[0], TensorProto.UNDEFINED)
        return bool(known != TensorProto.UNDEFINED and known == attribute(node, "to"))
    if is_op(node, "Sum", "Max", "Min", "Mean"):
        return len(node.input) == 1
    return is_op(node, "Identity")


def _make_by_name(graph: Graph, node: NodeProto, captured: Collection[str]) -> None:
    """Let the producer of a node's input make the node's output instead, where names allow it."""
    source, result = node.input[0], node.output[0]
    producer = graph.producers().get(source)
    if producer is None or source in graph.output_names or source in captured:
        if node.op_type != "Identity":
            graph.replace(node, [helper.make_node("Identity", [source], [result])])
        return
    graph.replace(node, [])
    graph.rename_uses({source: result})
    producer.output[list(producer.output).index(source)] = result


def split_variadic(graph: Graph) -> None:
    """Sum(a, b, c) --> Add(Add(a, b), c); Max and Min likewise. Long Concats are grouped.

    TVM imports the variadic form as a stack of all inputs and a reduction over it.
    """
    for node in list(graph.nodes):
        if is_op(node, "Concat") and len(node.input) > _MOST_CONCATENATED:
            graph.replace(node, _grouped(graph, node))
        fewest = 2 if node.op_type == "Sum" else 3
        if is_op(node, *_CHAINED) and len(node.input) >= fewest:
            graph.replace(node, _chain(graph, node, _CHAINED[node.op_type]))


def _grouped(graph: Graph, node: NodeProto) -> list[NodeProto]:
    """Concat of many --> Concat of Concats of at most `_MOST_CONCATENATED`."""
    made, names, most = [], list(node.input), _MOST_CONCATENATED
    while len(names) > most:
        groups = [names[at : at + most] for at in range(0, len(names), most)]
        names = [graph.fresh(f"{node.output[0]}_part") for _ in groups]
        for group, name in zip(groups, names, strict=True):
            axis = attribute(node, "axis", 1)
            made.append(helper.make_node("Concat", group, [name], name=name, axis=axis))
    node.input[:] = names
    return [*made, node]


def _chain(graph: Graph, node: NodeProto, op: str) -> list[NodeProto]:
    links: list[NodeProto] = []
    left, *others = node.input
    for index, right in enumerate(others, start=1):
        last = index == len(others)
        result = node.output[0] if last else graph.fresh(f"{node.output[0]}_part{index}")
        graph.dtypes[result] = graph.dtypes.get(node.output[0], TensorProto.UNDEFINED)
        name = f"{node.name}_{index}" if node.name else ""
        links.append(helper.make_node(op, [left, right], [result], name=name))
        left = result
    return links
