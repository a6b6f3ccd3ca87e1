"""Inputs that are as long as a run gives them: what lies behind is room."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from onnx import ModelProto, helper

from ..batches import Asked, Span
from ..graph.graph import OWN, Graph
from ..misfit import misfit
from ..onnx.bind import model_inputs
from ..onnx.sizes import is_length, open_axes
from ..operators.emitter import INT64
from ..ranges import Place, Range, fixed
from . import rooms
from .known import Known
from .numbers import Number, symbol

_LENGTH = "length"


def asked_of(proto: ModelProto, shapes: Asked) -> tuple[Range, ...]:
    """The ranges of a model's shapes with one of a length; none of others, which are of a batch.

    A length is what lies beyond a first axis, or has a name of time, or is all that an input has.

    Axes of the same range are as long as each other, unless they have names and the graph takes
    each of its own length, or an input has two of them: then those of one name are, or, where a
    model names none, those that are the same axis. Several lengths are named after their axes.
    """
    axes = open_axes(proto)
    names = {(axis.value.name, axis.at): axis.name for axis in axes}
    long = {(axis.value.name, axis.at) for axis in axes if is_length(axis, axes)}
    spans = {place: size for place, size in _places(shapes) if isinstance(size, Span)}
    if not any(place[1] or place in long for place in spans):
        return ()
    apart = set(_apart(shapes, names))
    free = set(_free(proto, shapes, spans, names))
    found: dict[tuple[Span, str], list[Place]] = defaultdict(list)
    for place, span in spans.items():
        own = span in apart or place in free
        found[span, _label(place, names) if own else ""].append(place)
    taken = {name for node in proto.graph.node for name in (*node.input, *node.output)}
    taken |= {value.name for value in proto.graph.input}
    called = names if len(found) > 1 else {}
    return tuple(
        Range(span.least, span.most, _length(called, places, taken), tuple(places), span.step)
        for (span, _), places in found.items()
    )


def _apart(shapes: Asked, names: Mapping[Place, str]) -> Iterator[Span]:
    """The ranges that some input has along axes of different lengths."""
    for name, shape in shapes.items():
        for span in {one for one in shape if isinstance(one, Span)}:
            own = [(name, axis) for axis, size in enumerate(shape) if size == span]
            if len({_label(place, names) for place in own}) > 1:
                yield span


def _free(
    proto: ModelProto, shapes: Asked, spans: Mapping[Place, Span], names: Mapping[Place, str]
) -> Iterator[Place]:
    """The axes that the graph takes with another length than all of their range but their name's.

    A name that an exporter made of an input's says nothing.
    """
    called = {at: names[at] for at in spans if at in names and not names[at].startswith(at[0])}
    for name in sorted(set(called.values())):
        own = [place for place in called if called[place] == name]
        span = spans[own[0]]
        alone = all(names.get(place) == name for place, one in spans.items() if one == span)
        if alone or span.most - span.step < span.least:
            continue
        shorter = dict.fromkeys(own, span.most - span.step)
        tried = {place: shorter.get(place, one.most) for place, one in spans.items()}
        if not misfit(proto, fixed(shapes, tried)):
            yield from own


def _places(shapes: Asked) -> Iterator[tuple[Place, int | Span]]:
    for name, shape in shapes.items():
        yield from (((name, axis), size) for axis, size in enumerate(shape))


def _label(place: Place, names: Mapping[Place, str]) -> str:
    return names.get(place, str(place[1]))


def _length(names: Mapping[Place, str], places: Sequence[Place], taken: set[str]) -> str:
    """An input's name that no other has, like that of its first axis."""
    length = names.get(places[0], _LENGTH)
    while length in taken:
        length += "_"
    taken.add(length)
    return length


def prepare(graph: Graph, asked: Sequence[Range]) -> None:
    """Let what ranges leave open be so, of a graph with the most that there may be."""
    graph.ranges = tuple(asked)
    rooms.own_model(graph)
    for value in model_inputs(graph.proto):
        dims = value.type.tensor_type.shape.dim
        sizes = tuple(dim.dim_value for dim in dims)
        for one in asked:
            for axis in (axis for name, axis in one.places if name == value.name):
                graph.rooms[value.name] = sizes
                dims[axis].Clear()
                dims[axis].dim_param = one.length
    for value in graph.proto.graph.output:
        value.type.tensor_type.ClearField("shape")


def start(known: Known) -> None:
    """Say how much counts of the inputs that ranges leave open."""
    graph = known.graph
    if not graph.rooms:
        return
    long = [(one, _number(graph, one)) for one in graph.ranges]
    if long:
        rooms.say(known, [(*place, number) for one, number in long for place in one.places])


def _number(graph: Graph, asked: Range) -> Number:
    """How long inputs are: so many steps."""
    cause, step = "the length of its inputs", asked.step
    steps = _checked(graph, asked)
    return symbol(steps, 0, (-(-asked.least // step), asked.most // step), cause) * step


def _checked(graph: Graph, asked: Range) -> str:
    """The steps of a length, with which a call fails where there is no room for it."""
    made = graph.fresh(asked.length)
    graph.declare(asked.length, INT64, ())
    graph.declare(made, INT64, ())
    words = {"domain": OWN, "least": asked.least, "most": asked.most, "step": asked.step}
    graph.nodes.insert(0, helper.make_node("Length", [asked.length], [made], made, **words))
    return made


def end(graph: Graph) -> bool:
    """Close what ranges left open; whether there was such."""
    if not graph.ranges or not graph.rooms:
        return False
    rooms.close(graph, *(one.length for one in graph.ranges))
    return True
