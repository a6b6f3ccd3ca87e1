"""NonMaxSuppression as generated code: the best boxes of each class that overlap no better one.

    for class of an image (shares of them in parallel):
        heap = boxes whose score is above the threshold, the best one at the top      O(n)
        until it is empty, or enough are kept:
            box = the top, which is removed                                           O(log n)
            if no kept box overlaps it too much: keep it                              O(kept)
    rows = (image, class, box) of what all of them kept, in order, and how many

Of equal scores the first box comes first. Corners and areas of kept boxes are stored in arrays, so
that a box is compared with several of them at once. Float32 operations are in the order of ONNX
Runtime's, so that both decide alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..._lazy_tvm import relax, tirx, tvm
from .converting import Call
from .operator import Operator

_WORTH_THREADS = 1 << 12  # with at least this many scores, threads pay
_SHARES = 16  # the most shares: each has a heap of its own
_TOGETHER = 16  # kept boxes that a box is compared with at once
_CORNERS = 5  # numbers that are stored of a kept box: its corners and its area


def suppressed(call: Call) -> Any:
    """The rows of the kept boxes, with room for as many as there can be, and their number.

    A sixth input says how many of the boxes count.
    """
    images, boxes, _ = call.shape(0)
    classes = call.shape(1)[1]
    limit = call.value(2)
    most = 0 if limit is None else max(0, min(boxes, int(limit.reshape(()))))
    what = _Suppression(
        images, classes, boxes, most,
        bool(call.attribute("center_point_box", 0)), call.input(4) is not None,
    )  # fmt: skip
    given = [call.inputs[0], call.inputs[1], *_numbers(call, boxes)]
    made = call.emit(call.bb.emit_te(what.compute, *given, primfunc_name_hint="suppression"))
    rows, count = (call.emit(relax.TupleGetItem(made, at)) for at in (0, 1))
    return relax.Tuple([rows, relax.op.reshape(count, ())])


def _numbers(call: Call, boxes: int) -> Iterator[Any]:
    """The thresholds, and how many boxes count, as tensors of one element."""
    for at, kind, usual in ((3, "float32", 0.0), (4, "float32", 0.0), (5, "int64", boxes)):
        given = call.input(at)
        known = relax.const(usual, kind) if given is None else given
        yield call.emit(relax.op.reshape(known, (1,)))


@dataclass(frozen=True)
class _Suppression:
    """The sizes of a suppression; at most `most` boxes of each class of an image are kept.

    centers: whether boxes are given as centres and sizes. floored: whether there is a least score.
    """

    images: int
    classes: int
    boxes: int
    most: int
    centers: bool
    floored: bool

    @property
    def groups(self) -> int:
        """The number of classes of all images."""
        return self.images * self.classes

    @property
    def shares(self) -> int:
        """The number of shares of the groups, which threads may take."""
        parallel = self.groups * self.boxes >= _WORTH_THREADS
        return min(_SHARES, self.groups) if parallel else 1

    def compute(self, *given: Any) -> Any:
        """In TE: [groups * most, 3] rows, [1] their number."""
        shapes = [(self.groups * self.most, 3), (1,)]
        build = lambda ins, outs: _Program(self, ins, outs).build()  # noqa: E731
        kinds = ["int64", "int64"]
        return tvm.te.extern(shapes, given, build, name="suppression", dtype=kinds)


class _Program:
    """The statements of a suppression in TIR."""

    def __init__(self, what: _Suppression, given: Any, made: Any) -> None:
        self.what, self.T = what, tvm.script.ir_builder.tirx
        proxies = map(self.T.buffer_proxy, (*given, *made))
        self.box, self.score, self.overlap, self.least, self.valid, self.rows, self.count = proxies

    def build(self) -> Any:
        """The whole statement."""
        T, what = self.T, self.what  # noqa: N806
        parallel = what.shares > 1
        padded = -(-what.most // _TOGETHER) * _TOGETHER
        with tvm.script.ir_builder.IRBuilder() as builder:
            with T.seq_scope():
                self.heap = self._buffer((what.shares, what.boxes), "int32")
                self.corners = self._buffer((what.shares, _CORNERS, padded), "float32")
                self.kept = self._buffer((what.groups, what.most), "int32")
                self.many = self._buffer((what.groups,), "int32")
                with (T.parallel if parallel else T.serial)(0, what.shares) as self.share:
                    first = self.share * what.groups // what.shares
                    end = (self.share + 1) * what.groups // what.shares
                    with T.serial(0, end - first) as at:
                        self._group(first + at)
                self._gather()
            return builder.get()

    def _buffer(self, shape: tuple[int, ...], kind: str, scope: str = "global") -> Any:
        return self.T.buffer_proxy(self.T.alloc_buffer(shape, kind, scope=scope))

    def _local(self, kind: str, value: Any) -> Any:
        made = self._buffer((1,), kind, "local")
        made[0] = tirx.const(value, kind) if isinstance(value, (int, float)) else value
        return made

    def _group(self, group: Any) -> None:
        """Find the boxes of a class that are kept."""
        T, what = self.T, self.what  # noqa: N806
        self.group = group
        self.image, self.kind = group // what.classes, group % what.classes
        self.size = self._local("int32", 0)
        self.found = self._local("int32", 0)
        self._fill()
        with T.While(tirx.And(self.size[0] > 0, self.found[0] < what.most)):
            top = self._local("int32", self.heap[self.share, 0])
            self.size[0] = self.size[0] - 1
            last = self._local("int32", self.heap[self.share, self.size[0]])
            self._settle(0, last[0])
            self._consider(top[0])
        self.many[group] = self.found[0]

    def _fill(self) -> None:
        """Make a heap of the boxes that may be kept."""
        T, what = self.T, self.what  # noqa: N806
        with T.serial(0, tirx.Cast("int32", self.valid[0])) as box:
            self.heap[self.share, self.size[0]] = box
            above = self._score(box) > self.least[0] if what.floored else tirx.const(True, "bool")
            self.size[0] = self.size[0] + tirx.Cast("int32", above)
        half = self._local("int32", self.size[0] // 2)
        with T.serial(0, half[0]) as step:
            at = half[0] - 1 - step
            self._settle(at, self._local("int32", self.heap[self.share, at])[0])

    def _score(self, box: Any) -> Any:
        return self.score[self.image, self.kind, box]

    def _is_before(self, one: Any, other: Any) -> Any:
        """Whether a box is taken before another one."""
        a, b = self._score(one), self._score(other)
        return tirx.Or(a > b, tirx.And(tirx.EQ(a, b), one < other))

    def _settle(self, hole: Any, box: Any) -> None:
        """Put a box into a hole of the heap, or below it."""
        T = self.T  # noqa: N806
        at, child = self._local("int32", hole), self._local("int32", 2 * hole + 1)
        with T.While(child[0] < self.size[0]):
            with T.If(child[0] + 1 < self.size[0]), T.Then():
                pair = (self.heap[self.share, child[0] + 1], self.heap[self.share, child[0]])
                with T.If(self._is_before(*pair)), T.Then():
                    child[0] = child[0] + 1
            with T.If(self._is_before(self.heap[self.share, child[0]], box)):
                with T.Then():
                    self.heap[self.share, at[0]] = self.heap[self.share, child[0]]
                    at[0] = child[0]
                    child[0] = 2 * child[0] + 1
                with T.Else():
                    child[0] = self.size[0]
        self.heap[self.share, at[0]] = box

    def _consider(self, box: Any) -> None:
        """Keep a box, unless a kept one overlaps it too much."""
        T = self.T  # noqa: N806
        corners = [self._local("float32", value) for value in self._corners(box)]
        sides = (corners[2][0] - corners[0][0], corners[3][0] - corners[1][0])
        area = self._local("float32", sides[0] * sides[1])
        covered, block = self._local("int32", 0), self._local("int32", 0)
        with T.While(tirx.And(tirx.EQ(covered[0], 0), block[0] * _TOGETHER < self.found[0])):
            with T.serial(0, _TOGETHER) as lane:
                at = block[0] * _TOGETHER + lane
                hit = tirx.And(at < self.found[0], self._overlaps(at, corners, area[0]))
                covered[0] = tirx.bitwise_or(covered[0], tirx.Cast("int32", hit))
            block[0] = block[0] + 1
        with T.If(tirx.EQ(covered[0], 0)), T.Then():
            for row, value in enumerate([*corners, area]):
                self.corners[self.share, row, self.found[0]] = value[0]
            self.kept[self.group, self.found[0]] = box
            self.found[0] = self.found[0] + 1

    def _corners(self, box: Any) -> tuple[Any, ...]:
        """Least x and y, largest x and y."""
        a, b, c, d = (self.box[self.image, box, at] for at in range(4))
        if self.what.centers:
            two = tirx.const(2.0, "float32")
            return a - c / two, b - d / two, a + c / two, b + d / two
        (x0, x1), (y0, y1) = _in_order(b, d), _in_order(a, c)
        return x0, y0, x1, y1

    def _overlaps(self, at: Any, corners: list[Any], area: Any) -> Any:
        """Whether a kept box overlaps the box with these corners by more than the threshold."""
        x0, y0, x1, y1, other = (self.corners[self.share, row, at] for row in range(_CORNERS))
        mine = [corner[0] for corner in corners]
        zero = tirx.const(0.0, "float32")
        wide = tirx.min(x1, mine[2]) - tirx.max(x0, mine[0])
        high = tirx.min(y1, mine[3]) - tirx.max(y0, mine[1])
        both = wide * high
        either = other + area - both
        sound = tirx.all(
            wide > zero, high > zero, both > zero, other > zero, area > zero, either > zero
        )
        return tirx.And(sound, both / either > self.overlap[0])

    def _gather(self) -> None:
        """Write the rows of all groups one after the other, and zeros behind the last."""
        T, what = self.T, self.what  # noqa: N806
        at = self._local("int64", 0)
        with T.serial(0, what.groups) as group, T.serial(0, self.many[group]) as step:
            row = (group // what.classes, group % what.classes, self.kept[group, step])
            for column, value in enumerate(row):
                self.rows[at[0], column] = tirx.Cast("int64", value)
            at[0] = at[0] + 1
        self.count[0] = at[0]
        with T.serial(0, what.groups * what.most - at[0]) as rest, T.serial(0, 3) as column:
            self.rows[at[0] + rest, column] = tirx.const(0, "int64")


def _in_order(a: Any, b: Any) -> tuple[Any, Any]:
    """The smaller of two, then the larger."""
    return tirx.Select(a >= b, b, a), tirx.Select(a >= b, a, b)


OPERATORS = (Operator("NonMaxSuppression", since=10, constant=(2,), convert=suppressed),)
