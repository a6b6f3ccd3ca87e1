"""Inputs as long as a run gives them: they have room for the most, and what is behind is unused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from onnx import helper

from ..batches import Asked, Span
from ..graph.graph import OWN, Graph
from ..misfit import Trials
from ..onnx.bind import model_inputs
from ..onnx.sizes import is_length, open_axes
from ..operators.emitter import INT64
from ..ranges import Place, Range, fixed
from ..together import tied, together
from . import rooms
from .known import Known
from .numbers import Number, symbol

_LENGTH = "length"


def asked_of(trials: Trials, shapes: Asked) -> tuple[Range, ...]:
    """The ranges of lengths in a model's shapes; none if its ranges are those of a batch.

    An axis is a length if it is not the first, or has a name for time, or is the only axis of its
    input.

    Axes with the same range have one length, with two exceptions: the graph takes a length of its
    own for some of their names, or an input has two of them. Then axes have one length if they have
    one name, or, in a model without names, the same number. Lengths that the graph does not take
    apart are one as well, with axes that are multiples of it. Several lengths are named after their
    axes.
    """
    proto = trials.proto
    axes = open_axes(proto)
    names = {(axis.value.name, axis.at): axis.name for axis in axes}
    long = {(axis.value.name, axis.at) for axis in axes if is_length(axis, axes)}
    spans = {place: size for place, size in _places(shapes) if isinstance(size, Span)}
    if not any(place[1] or place in long for place in spans):
        return ()
    apart = set(_apart(shapes, names))
    free = dict(_free(trials, shapes, spans, names))
    found: dict[tuple[Span, str], list[Place]] = defaultdict(list)
    for place, span in spans.items():
        own = _label(place, names) if span in apart else ""
        found[span, free.get(place, own)].append(place)
    taken = {name for node in proto.graph.node for name in (*node.input, *node.output)}
    taken |= {value.name for value in proto.graph.input}
    groups = [(span, places) for (span, _), places in found.items()]
    joined = _joined(trials, shapes, spans, groups)
    called = names if len(joined) > 1 else {}
    return tuple(_range(some, called, taken) for some in joined)


Group = tuple[Span, list[Place]]  # axes with one range


def _joined(
    trials: Trials, shapes: Asked, spans: Mapping[Place, Span], groups: Sequence[Group]
) -> list[list[Group]]:
    """The groups, those together of which the graph takes no other length alone."""
    sizes = {place: span.most for place, span in spans.items()}

    def fits(some: Sequence[Group]) -> bool:
        least = _least(some)
        if not all(least.times(span) for span, _ in some):
            return False
        less = {place: span.most - span.step for span, places in some for place in places}
        return not trials.misfit(fixed(shapes, sizes | less))

    def alike(one: Group, other: Group) -> bool:
        places = (*one[1], *other[1])
        return len({len(shapes[name]) - axis for name, axis in places}) == 1

    if len(groups) < 2 or any(span.most - span.step < span.least for span, _ in groups):
        return [[one] for one in groups]
    return tied(groups, fits, alike)


def _least(groups: Iterable[Group]) -> Span:
    return min((span for span, _ in groups), key=lambda span: span.most)


def _range(groups: Sequence[Group], called: Mapping[Place, str], taken: set[str]) -> Range:
    """The range of groups whose sizes are multiples of the first one's."""
    first = _least(groups)
    found = [(place, first.times(span) or 1) for span, places in groups for place in places]
    found.sort(key=lambda one: one[1])
    places = tuple(place for place, _ in found)
    times = tuple(by for _, by in found) if found[-1][1] > 1 else ()
    length = _length(called, places, taken)
    return Range(first.least, first.most, length, places, first.step, times)


def _apart(shapes: Asked, names: Mapping[Place, str]) -> Iterator[Span]:
    """The ranges that some input has along axes of different lengths."""
    for name, shape in shapes.items():
        for span in {one for one in shape if isinstance(one, Span)}:
            own = [(name, axis) for axis, size in enumerate(shape) if size == span]
            if len({_label(place, names) for place in own}) > 1:
                yield span


def _free(
    trials: Trials, shapes: Asked, spans: Mapping[Place, Span], names: Mapping[Place, str]
) -> Iterator[tuple[Place, str]]:
    """The axes for which the graph takes another length than for others with the same range.

    Each comes with the name of its length, the first of the names that change together. A name that
    an exporter derived from an input's says nothing.
    """
    called = {at: names[at] for at in names if at in spans and not names[at].startswith(at[0])}
    for span in dict.fromkeys(spans.values()):
        own = {place: name for place, name in called.items() if spans[place] == span}
        alike = {names.get(place) for place, one in spans.items() if one == span}
        if len(alike) < 2 or span.most - span.step < span.least:
            continue

        def fits(some: Sequence[str], span: Span = span) -> bool:
            sizes = {place: one.most for place, one in spans.items()}
            shorter = [place for place, name in called.items() if name in some]
            tried = sizes | dict.fromkeys(shorter, span.most - span.step)
            return not trials.misfit(fixed(shapes, tried))

        groups, _ = together(list(dict.fromkeys(own.values())), fits)
        label = {name: group[0] for group in groups for name in group}
        yield from ((place, label[name]) for place, name in own.items() if name in label)


def _places(shapes: Asked) -> Iterator[tuple[Place, int | Span]]:
    for name, shape in shapes.items():
        yield from (((name, axis), size) for axis, size in enumerate(shape))


def _label(place: Place, names: Mapping[Place, str]) -> str:
    return names.get(place, str(place[1]))


def _length(names: Mapping[Place, str], places: Sequence[Place], taken: set[str]) -> str:
    """A new input's name, like the name of its first axis, and different from all others."""
    length = names.get(places[0], _LENGTH)
    while length in taken:
        length += "_"
    taken.add(length)
    return length


def prepare(graph: Graph, asked: Sequence[Range]) -> None:
    """Open the sizes that have ranges, in a graph that is bound to the largest sizes."""
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
    """Declare how much counts of the inputs that ranges leave open."""
    graph = known.graph
    if not graph.rooms:
        return
    long = [(one, _number(graph, one)) for one in graph.ranges]
    if long:
        extents = [(at, n * by) for one, n in long for at, by in one.extents()]
        rooms.say(known, [(*place, number) for place, number in extents])


def _number(graph: Graph, asked: Range) -> Number:
    """The length of inputs as a number: a multiple of the range's step."""
    cause, step = "the length of its inputs", asked.step
    steps = _checked(graph, asked)
    return symbol(steps, 0, (-(-asked.least // step), asked.most // step), cause) * step


def _checked(graph: Graph, asked: Range) -> str:
    """The number of steps in a length; the call fails if the length is not in its range."""
    made = graph.fresh(asked.length)
    graph.declare(asked.length, INT64, ())
    graph.declare(made, INT64, ())
    words = {"domain": OWN, "least": asked.least, "most": asked.most, "step": asked.step}
    graph.nodes.insert(0, helper.make_node("Length", [asked.length], [made], made, **words))
    return made


def end(graph: Graph) -> bool:
    """Close the sizes that ranges left open; whether there were any."""
    if not graph.ranges or not graph.rooms:
        return False
    rooms.close(graph, *(one.length for one in graph.ranges))
    return True
