"""Sizes that a run computes of its data, without a bound, such as the frames of a sentence.

    y = Range(0, n, 1)   -->   m = Length(n) ; y = Range(0, m, 1)        m: at most the usual room

The number is sought behind the arithmetic of sizes, so that all sizes that follow from it are known
to: of `4 * ceil(n / 4)` frames, half are `2 * ceil(n / 4)`. A run that needs more room fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod

from onnx import NodeProto, TensorProto

from ...runtime.out_of_range import COMPUTED
from ..graph.graph import is_op, optional_input
from ..onnx.skeleton import needed
from ..operators.emitter import INT64
from .known import Known, Step
from .numbers import symbol
from .values import FOLLOWED, certain, objects

USUAL_ROOM = 1024
_EACH = 8  # the room for each number that is added up: a token is spoken in some frames
_SIZES = {"ConstantOfShape": 0, "Expand": 1, "Range": 1}  # the inputs that say a size
_WHOLE = (TensorProto.INT64, TensorProto.INT32)
_KEEPING = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze")
_MOST = 64  # the most elements of a tensor of sizes


class Makers(Mapping[str, NodeProto]):
    """The node that makes each tensor, of a list of nodes to which a walk appends."""

    def __init__(self, nodes: Sequence[NodeProto]) -> None:
        self._nodes = nodes
        self._places: dict[str, int] = {}
        self._seen = 0

    def __getitem__(self, name: str) -> NodeProto:
        return self._nodes[self._all()[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> Mapping[str, int]:
        """The places of the makers, also of the nodes that were appended since the last call."""
        for at in range(self._seen, len(self._nodes)):
            self._places.update((name, at) for name in self._nodes[at].output)
        self._seen = len(self._nodes)
        return self._places

    def sorted(self, names: Iterable[str]) -> list[NodeProto]:
        """The makers of some tensors, in the order of the nodes."""
        places = self._all()
        return [self._nodes[at] for at in sorted({places[name] for name in names})]


def opened(known: Known, node: NodeProto, made: Makers) -> list[NodeProto]:
    """Give room to the sizes that a node reads and nothing bounds; the nodes that check them.

    made: of the nodes that are done.
    """
    at = _SIZES.get(node.op_type) if not node.domain else None
    name = optional_input(node, at) if at is not None else ""
    if not name or known.values(name) is not None:
        return []
    body = _behind(known, made, name)
    found = _sources(known, body)
    if (sources := found.get(name)) is None:
        return []
    checks = [one for source in sources for one in _checked(known, made, source)]
    followed = [one for one in body if found[one.output[0]] not in (None, [one.output[0]])]
    for one in needed(followed, [name]):
        known.learn(one)
    return checks


def _behind(known: Known, made: Makers, name: str) -> list[NodeProto]:
    """The sorted nodes behind a size, up to those that are known or are no arithmetic of sizes."""
    found, ahead = set[str](), [name]
    while ahead:
        one = ahead.pop()
        if one in found or one not in made or known.values(one) is not None:
            continue
        found.add(one)
        if _is_followed(known, made[one]):
            ahead += made[one].input
    return made.sorted(found)


def _is_followed(known: Known, node: NodeProto) -> bool:
    """Whether a node is arithmetic of a few numbers."""
    size = prod(known.graph.shapes.get(node.output[0], (_MOST + 1,)))
    return size <= _MOST and node.op_type in FOLLOWED and not node.domain


def _sources(known: Known, body: Sequence[NodeProto]) -> dict[str, list[str] | None]:
    """For each node's first result, the numbers that it is computed from and that nothing bounds.

    None for what is computed from other data, too. A number that is computed so is its own source.
    """
    found: dict[str, list[str] | None] = {}
    for node in body:
        name = node.output[0]
        given = [_source(known, found, one) for one in node.input if one]
        if _is_followed(known, node) and None not in given:
            found[name] = list(dict.fromkeys(one for part in given for one in part or ()))
        else:
            is_one = prod(known.graph.shapes.get(name, (0,))) == 1
            is_number = is_one and known.graph.dtypes.get(name) in _WHOLE
            found[name] = [name] if is_number else None
    return found


def _source(known: Known, found: Mapping[str, list[str] | None], name: str) -> list[str] | None:
    return [] if known.values(name) is not None else found.get(name)


def _checked(known: Known, made: Mapping[str, NodeProto], name: str) -> list[NodeProto]:
    """The nodes that check a number; it is known to be in its room from now on."""
    step = Step(known, made[name])
    least = next(_at_least(known, made, name), 0)
    most = max(USUAL_ROOM, least, _EACH * _added_up(known, made, name))
    words = {"least": least, "most": most, "step": 1, "of": COMPUTED}
    number = step.cast(step.reshape(name), INT64)
    checked = step.own("Length", [number], INT64, (), **words)
    room = symbol(checked, 0, (least, most), step.cause)
    known.hold(name, objects(room).reshape(known.graph.shapes[name]))
    return step.nodes


def _added_up(known: Known, made: Mapping[str, NodeProto], name: str) -> int:
    """How many numbers the graph adds up to a number, at most; 0 if it is no sum."""
    node = _maker(made, name, "Clip", "Max")
    if node is None or not is_op(node, "ReduceSum"):
        return 0
    return prod(known.graph.shapes.get(node.input[0], (0,)))


def _maker(made: Mapping[str, NodeProto], name: str, *others: str) -> NodeProto | None:
    """The node that makes a number, behind those that keep it, or are of the other operators."""
    node = made.get(name)
    while node is not None and is_op(node, *_KEEPING, *others):
        node = made.get(node.input[0])
    return node


def _at_least(known: Known, made: Mapping[str, NodeProto], name: str) -> Iterator[int]:
    """A lower bound that the graph gives a number; nothing if it gives none."""
    node = _maker(made, name)
    if node is not None and is_op(node, "Clip", "Max"):
        least = certain(known.values(optional_input(node, 1)))
        if least and len(least) == 1:
            yield max(0, least[0])
