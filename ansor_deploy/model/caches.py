"""Caches of a model: inputs that come back as outputs, with rows for new tokens appended.

    present = Concat(past, new)           past: (batch, heads, past, width)
    -->
    a context of so many rows             past and present: the first so many rows of one cache

They are recognised by the nodes that make the outputs, not by names. Their length, and every size
that follows from it, stays open: it becomes a number that is an input of each run (`counted/`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from sys import maxsize

from onnx import ModelProto, NodeProto, inliner

from ..errors import ModelError
from ..runtime.context import Cache, Context, Counted
from .cache_names import kind_of, name_masks, name_rows, origin, read_directly
from .counted.attentions import cache_places
from .graph.fold import sort_and_fold
from .graph.graph import Graph
from .misfit import Trials, longest
from .onnx.bind import bind_shapes, declared_shape, model_inputs
from .onnx.size_names import SizeName
from .onnx.sizes import open_axes, proposals
from .onnx.skeleton import attribute, skeleton, tensors
from .onnx.usual_sizes import rotary_tables

Shape = tuple[int, ...]
LENGTH = "length"
_USUAL = 1024  # rows of a cache where nothing says how many
# For each operator: (input, output) places of a cache that it extends.
_BY_POSITION = {"GroupQueryAttention": ((3, 1), (4, 2))}
_ROWS = 2  # the axis of the rows in caches of these operators


@dataclass(frozen=True)
class Opened:
    """A model with a context. names: the sizes that its length changes. sizes: all other sizes."""

    proto: ModelProto
    context: Context
    past: str
    sizes: Mapping[str, int]

    @classmethod
    def of(cls, proto: ModelProto, given: Mapping[str, Shape], rows: int) -> Opened:
        """A model whose caches get room for so many rows; ModelError where it has no caches.

        given: the shapes that the user gave; the others are as the model proposes them.
        """
        caches = list(found_caches(proto))
        name_rows(proto, {(one.input, one.axis) for one in caches})
        past = _past(proto, caches)
        shapes = _fitting(proto, given)
        sizes, longer = _longer(proto, shapes, past)
        by_name = [longer[n].value({**sizes, past: 1}) - 1 for n in longer if n != past]
        tokens = _tokens(proto, shapes, sizes[past], caches[0], by_name)
        name_masks(proto, shapes, given, past, tokens)
        sizes, longer = _longer(proto, shapes, past)
        if rows <= tokens:
            raise ModelError(
                f"a context of {rows} rows is too small for a model that adds {tokens} in a step",
                f"give it more rows: --context {max(2 * tokens, 128)}",
            )
        if rows > (most := _most_rows(proto)):
            raise ModelError(
                f"a context of {rows} rows is too large for a model with angles for {most} places",
                f"give it fewer rows: --context {most}",
            )
        inner = {cache.input for cache in caches}
        counted = tuple(
            Counted(a.value.name, a.at, longer[a.name].value({**sizes, past: rows}) - rows)
            for a in open_axes(proto)
            if a.name in longer and a.value.name not in inner
        )
        taken = {value.name for value in model_inputs(proto)}
        length = LENGTH if LENGTH not in taken else f"{caches[0].input}.{LENGTH}"
        return cls(proto, Context(rows, tokens, length, tuple(caches), counted), past, sizes)

    def bound(self, length: int) -> ModelProto:
        """The model with static shapes where `length` rows count: the oracle runs it."""
        return bind_shapes(self.proto, self.shapes(length))

    def shapes(self, length: int) -> dict[str, Shape]:
        """The shapes of the inputs with open sizes where `length` rows count."""
        sizes = {**self.sizes, self.past: length}
        names = {axis.name: SizeName(axis.name, sizes) for axis in open_axes(self.proto)}
        shapes: dict[str, list[int]] = {}
        for axis in open_axes(self.proto):
            declared = declared_shape(axis.value) or ()
            shape = shapes.setdefault(axis.value.name, list(declared))  # type: ignore[arg-type]
            shape[axis.at] = names[axis.name].value(sizes)
        return {name: tuple(one) for name, one in shapes.items()}

    def opened(self) -> ModelProto:
        """The model with static shapes, except for the sizes that its length changes."""
        proto = self.bound(self.context.rows - self.context.tokens)
        read_directly(proto, {one.input for one in self.context.caches})
        places = [(one.input, one.axis) for one in self.context.caches]
        places += [(one.name, one.axis) for one in self.context.counted]
        for value in model_inputs(proto):
            for name, axis in places:
                if name == value.name:
                    dim = value.type.tensor_type.shape.dim[axis]
                    dim.Clear()
                    dim.dim_param = f"{name}.{axis}"
        for value in proto.graph.output:
            value.type.tensor_type.ClearField("shape")
        return proto


def assumed_rows(proto: ModelProto, given: Mapping[str, Shape]) -> int:
    """Rows for caches that have no length given; 0 if there are no such caches.

    As many as is usual, or as many as a table of positions has.
    """
    caches = list(found_caches(proto))
    places = {(one.input, one.axis) for one in caches if one.input not in given}
    if not places & {(axis.value.name, axis.at) for axis in open_axes(proto)}:
        return 0
    usual = min(_USUAL, _most_rows(proto))
    try:
        whole = Opened.of(skeleton(proto), given, usual)
    except ModelError:
        return 0
    if (tokens := whole.context.tokens) >= usual:
        return 0

    trials = Trials(whole.proto)

    def fault(rows: int) -> str:
        return trials.misfit(whole.shapes(rows - tokens))

    rows = _in_table(proto, longest(tokens, usual, fault)) if fault(usual) else usual
    return rows if rows > tokens else 0


def _in_table(proto: ModelProto, most: int) -> int:
    """The rows of a table, where one more row fits too: it would read the last one for all rows."""
    sizes = {size for tensor in tensors(proto.graph) for size in tensor.dims}
    return most - 1 if most - 1 in sizes and most not in sizes else most


def _most_rows(proto: ModelProto) -> int:
    """How many positions attentions have angles for; the largest size where they read no table."""
    return min((table.dims[0] for table in rotary_tables(proto) if table.dims), default=maxsize)


def fixed_caches(proto: ModelProto, given: Mapping[str, Shape]) -> dict[str, Shape]:
    """Shapes for all open inputs: those that are given, and for the others some that fit."""
    shapes = _fitting(proto, given)
    return {axis.value.name: shapes[axis.value.name] for axis in open_axes(proto)}


def found_caches(proto: ModelProto) -> Iterator[Cache]:
    """The inputs of a model that come back as outputs with more rows."""
    inputs = {value.name: value for value in model_inputs(proto)}
    makers = {name: node for node in proto.graph.node for name in node.output if name}
    for at, value in enumerate(proto.graph.output):
        kind = kind_of(value)
        made = origin(value.name, makers, kind)
        for before, axis in _grown(makers.get(made), made):
            name = origin(before, makers, kind)
            alike = name in inputs and kind_of(inputs[name]) == kind
            if alike and (rank := len(declared_shape(inputs[name]) or ())):
                yield Cache(name, value.name, axis % rank, at)


def _grown(node: NodeProto | None, made: str) -> Iterator[tuple[str, int]]:
    """The tensor to which a node appends rows and the axis of these; nothing for other nodes."""
    if node is None:
        return
    if node.op_type == "Concat" and len(node.input) == 2:
        yield node.input[0], attribute(node, "axis")
    for given, result in _BY_POSITION.get(node.op_type, ()) or cache_places(node):
        if len(node.output) > result and node.output[result] == made:
            yield node.input[given], _ROWS


def _longer(
    proto: ModelProto, shapes: Mapping[str, Shape], past: str
) -> tuple[dict[str, int], dict[str, SizeName]]:
    """The sizes of all open axes by their names, and the names of those that grow with the past."""
    sizes = {axis.name: shapes[axis.value.name][axis.at] for axis in open_axes(proto)}
    names = {name: SizeName(name, sizes) for name in sizes}
    return sizes, {name: one for name, one in names.items() if past in one.terms}


def _past(proto: ModelProto, caches: Iterable[Cache]) -> str:
    """The name of the size that all caches share; ModelError if there is none."""
    places = {(one.input, one.axis) for one in caches}
    names = {a.name for a in open_axes(proto) if (a.value.name, a.at) in places}
    if not places:
        raise ModelError(
            "the model has no caches to keep: no output is an input to which a Concat or an "
            "attention appends rows",
            "export the model with its past as inputs and its present as outputs, or build it "
            "without --context",
        )
    if len(names) != 1:
        listed = ", ".join(sorted(f"'{name}'" for name, _ in places))
        raise ModelError(
            f"the number of rows of its caches ({listed}) is not one open size with one name",
            "export the model with one dynamic axis for the past of all caches",
        )
    return names.pop()


def _fitting(proto: ModelProto, given: Mapping[str, Shape]) -> dict[str, Shape]:
    """Shapes for all inputs: those that are given, and the first proposed ones that fit them."""
    fixed = {
        value.name: tuple(size for size in declared_shape(value) or () if isinstance(size, int))
        for value in model_inputs(proto)
    }
    tried, trials = [{**fixed, **given, **one} for one in proposals(proto, given)], Trials(proto)
    return next((one for one in tried if not trials.misfit(one)), tried[0])


def _tokens(
    proto: ModelProto, shapes: Mapping[str, Shape], past: int, cache: Cache, by_name: Iterable[int]
) -> int:
    """How many rows a step adds: by shape inference, else by the names of sizes, else one.

    shapes: those of the inputs where the caches have `past` rows before the step.
    """
    graph = Graph.of(bind_shapes(inliner.inline_local_functions(skeleton(proto)), shapes))
    sort_and_fold(graph)
    graph.infer()
    if (shape := graph.shapes.get(cache.output)) is not None:
        return shape[cache.axis] - past
    makers = [node for node in graph.nodes if cache.output in node.output and cache_places(node)]
    for shape in (graph.shapes.get(node.input[0]) for node in makers):
        if shape is not None:
            return shape[-2]
    return max(by_name, default=1)
