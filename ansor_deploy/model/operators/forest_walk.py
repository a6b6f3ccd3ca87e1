"""The sums of what the leaves weigh that samples come to, as generated code.

    for some samples and some trees (in parallel), for tree, for sample of these:
        node = root ; while child of node != node: node = child[x <= threshold] of node
        for each weight of the node: y[sample, target] += weight

What a step asks of a node lies in 16 bytes, and a tree stays in the cache for the samples of a
task. The trees of one sample alone are shared out, and each share has sums of its own; otherwise
sums are in the order of the trees, as ONNX Runtime's are: of a forest's votes many are equal, and
then rounding decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._lazy_tvm import relax, tirx, tvm
from ...errors import ModelError
from .converting import Call
from .forest import Forest, ForestError

# Steps down from which on a parallel loop takes less time than it takes to start.
_WORTH_THREADS = 1 << 11
_DEPTH = 8  # steps that a tree takes, about
_GROUPS, _TOGETHER = 8, 64  # of samples at least, and samples of one at most
_SHARES, _FEWEST = 32, 8  # of trees at most, and trees of one at least
_STARTS = {"SUM": 0.0, "MIN": float("inf"), "MAX": float("-inf")}
_FEATURE, _THRESHOLD, _CHILD = 0, 1, 2  # of a node, the places of its words


def walked_down(call: Call) -> Any:
    """The sum, or the least or largest, of what the trees say: float32, a column for each target.

    A target that no tree weighs for is zero.
    """
    samples, features = call.shape(0)
    forest = _forest(call, features)
    walk = _Walk(
        samples, len(forest.roots), call.attribute("n_targets"), call.dtype(0),
        call.attribute("aggregate_function", "SUM"), bool(forest.missing.any()),
    )  # fmt: skip
    tables = [relax.const(table, str(table.dtype)) for table in walk.tables(forest)]
    made = call.bb.emit_te(walk.compute, call.inputs[0], *tables, primfunc_name_hint="forest")
    return relax.op.astype(call.emit(relax.op.sum(call.emit(made), axis=0)), "float32")


def _forest(call: Call, features: int) -> Forest:
    try:
        forest = Forest.of(call.attributes.get, call.dtype(0))
    except ForestError as error:
        raise ModelError(f"{call.operator}: {error}", "Export the model again.") from error
    if forest.feature.size and not 0 <= forest.feature.min() <= forest.feature.max() < features:
        raise ModelError(
            f"{call.operator}: a node asks for a feature beyond the {features} that there are",
            "Check the shapes given with --input-shape, or export the model again.",
        )
    return forest


@dataclass(frozen=True)
class _Walk:
    """So many samples down so many trees. dtype: what is compared and summed in.

    has_missing: whether a NaN is less than a threshold anywhere.
    """

    samples: int
    trees: int
    targets: int
    dtype: str
    how: str
    has_missing: bool

    @property
    def shares(self) -> int:
        """Shares of the trees."""
        alone = self.samples == 1 and self.how == "SUM"
        return max(1, min(_SHARES, self.trees // _FEWEST)) if alone else 1

    @property
    def together(self) -> int:
        """Samples of a group."""
        return max(1, min(_TOGETHER, self.samples // _GROUPS))

    @property
    def groups(self) -> int:
        """Groups of samples."""
        return -(-self.samples // self.together)

    def tables(self, forest: Forest) -> list[np.ndarray]:
        """What the program reads, but for the samples."""
        first, second = forest.child[0::2], forest.child[1::2]
        bits = forest.threshold.view(np.int32) if self.dtype == "float32" else np.zeros_like(first)
        nodes = np.stack([forest.feature, bits, first, second], axis=1)
        tables = [nodes, forest.roots, forest.starts, forest.targets, forest.weights]
        tables += [forest.missing] if self.has_missing else []
        return tables + ([] if self.dtype == "float32" else [forest.threshold])

    def compute(self, *given: Any) -> Any:
        """In TE, of the samples and the tables: [shares, samples, targets]."""
        shape = [(self.shares, self.samples, self.targets)]
        build = lambda ins, outs: _Program(self, ins, outs[0]).build()  # noqa: E731
        return tvm.te.extern(shape, given, build, name="forest", dtype=[self.dtype])


class _Program:
    """The statements."""

    def __init__(self, walk: _Walk, given: Any, made: Any) -> None:
        self.walk, self.T = walk, tvm.script.ir_builder.tirx
        proxies = map(self.T.buffer_proxy, given)
        self.x, self.node, self.roots, self.starts, self.target, self.weight, *rest = proxies
        self.missing = rest.pop(0) if walk.has_missing else None
        self.thresholds = rest
        self.y = self.T.buffer_proxy(made)

    def build(self) -> Any:
        """The whole statement."""
        T, walk = self.T, self.walk  # noqa: N806
        tasks = walk.shares * walk.groups
        parallel = tasks > 1 and walk.samples * walk.trees * _DEPTH >= _WORTH_THREADS
        with tvm.script.ir_builder.IRBuilder() as builder:
            with (T.parallel if parallel else T.serial)(0, tasks) as task:
                self.share, self.group = task // walk.groups, task % walk.groups
                with self._samples(), T.serial(0, walk.targets) as target:
                    self.y[self.share, self.sample, target] = self._number(_STARTS[walk.how])
                with self._trees() as tree, self._samples():
                    self._tree(tree)
                if walk.how != "SUM":
                    with self._samples():
                        self._fill()
            return builder.get()

    @contextmanager
    def _samples(self) -> Iterator[None]:
        """A loop over the samples of the group."""
        first, every = self.group * self.walk.together, self.walk.together
        count = tirx.min(every, self.walk.samples - first) if self.walk.samples % every else every
        with self.T.serial(0, count) as at:
            self.sample = first + at
            yield

    @contextmanager
    def _trees(self) -> Iterator[Any]:
        """A loop over the trees of the share."""
        trees, shares = self.walk.trees, self.walk.shares
        first = self.share * trees // shares
        with self.T.serial(0, (self.share + 1) * trees // shares - first) as at:
            yield first + at

    def _tree(self, tree: Any) -> None:
        """One sample down one tree."""
        T = self.T  # noqa: N806
        node = T.buffer_proxy(T.alloc_buffer((1,), "int32", scope="local"))
        node[0] = self.roots[tree]
        with T.While(tirx.NE(self.node[node[0], _CHILD], node[0])):
            node[0] = self.node[node[0], _CHILD + self._side(node[0])]
        with T.serial(0, self.starts[node[0] + 1] - self.starts[node[0]]) as step:
            at = self.starts[node[0]] + step
            place = self.share, self.sample, self.target[at]
            self.y[place] = self._with(self.y[place], self.weight[at])

    def _side(self, node: Any) -> Any:
        """The place of the child: 1 where the feature is no more than the threshold, else 0."""
        value = self.x[self.sample, self.node[node, _FEATURE]]
        is_less = tirx.Cast("int32", value <= self._threshold(node))
        if self.missing is None:
            return is_less
        return tirx.Select(tirx.isnan(value), self.missing[node], is_less)

    def _threshold(self, node: Any) -> Any:
        if self.thresholds:
            return self.thresholds[0][node]
        return tirx.reinterpret("float32", self.node[node, _THRESHOLD])

    def _with(self, sum_: Any, weight: Any) -> Any:
        if self.walk.how == "SUM":
            return sum_ + weight
        return (tirx.min if self.walk.how == "MIN" else tirx.max)(sum_, weight)

    def _fill(self) -> None:
        """Zeros for targets that no tree weighed for."""
        start = self._number(_STARTS[self.walk.how])
        with self.T.serial(0, self.walk.targets) as target:
            value = self.y[0, self.sample, target]
            filled = tirx.Select(tirx.EQ(value, start), self._number(0.0), value)
            self.y[0, self.sample, target] = filled

    def _number(self, value: float) -> Any:
        return tirx.const(value, self.walk.dtype)
