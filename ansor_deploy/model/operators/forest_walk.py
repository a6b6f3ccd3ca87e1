"""The sums of what the leaves weigh that samples come to, as generated code.

    for some samples (in parallel), for tree, for sample of these:
        node = root ; while child[2 * node] != node: node = child[2 * node + (x <= threshold)]
        for each weight of the node: y[sample, target] += weight

So a tree stays in the cache for some samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..._lazy_tvm import relax, tirx, tvm
from ...errors import ModelError
from .converting import Call
from .forest import Forest, ForestError

# Steps down from which on a parallel loop takes less time than it takes to start.
_WORTH_THREADS = 1 << 13
_DEPTH = 8  # steps that a tree takes, about
_TOGETHER, _GROUPS = 32, 32  # samples that go down a tree one after another, and groups of them
_STARTS = {"SUM": 0.0, "MIN": float("inf"), "MAX": float("-inf")}


def walked_down(call: Call) -> Any:
    """The sum, or the least or largest, of what the trees say: float32, a column for each target.

    A target that no tree weighs for is zero.
    """
    samples, features = call.shape(0)
    dtype = call.dtype(0)
    try:
        forest = Forest.of(call.attributes.get, dtype)
    except ForestError as error:
        raise ModelError(f"{call.operator}: {error}", "Export the model again.") from error
    if forest.feature.size and not 0 <= forest.feature.min() <= forest.feature.max() < features:
        raise ModelError(
            f"{call.operator}: a node asks for a feature beyond the {features} that there are",
            "Check the shapes given with --input-shape, or export the model again.",
        )
    how = call.attribute("aggregate_function", "SUM")
    has_missing = bool(forest.missing.any())
    walk = _Walk(samples, len(forest.roots), call.attribute("n_targets"), dtype, how, has_missing)
    tables = [relax.const(table, str(table.dtype)) for table in vars(forest).values()]
    made = call.bb.emit_te(walk.compute, call.inputs[0], *tables, primfunc_name_hint="forest")
    return relax.op.astype(call.emit(made), "float32")


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
    def together(self) -> int:
        """Samples of a group."""
        return max(1, min(_TOGETHER, self.samples // _GROUPS))

    def compute(self, *given: Any) -> Any:
        """In TE, of the samples and a forest's tables: [samples, targets]."""
        shape = [(self.samples, self.targets)]
        build = lambda ins, outs: _Program(self, ins, outs[0]).build()  # noqa: E731
        return tvm.te.extern(shape, given, build, name="forest", dtype=[self.dtype])


class _Program:
    """The statements."""

    def __init__(self, walk: _Walk, given: Any, made: Any) -> None:
        self.walk, self.T = walk, tvm.script.ir_builder.tirx
        proxies = map(self.T.buffer_proxy, given)
        self.x, self.feature, self.threshold, self.child, self.missing, *rest = proxies
        self.roots, self.starts, self.target, self.weight = rest
        self.y = self.T.buffer_proxy(made)

    def build(self) -> Any:
        """The whole statement."""
        T, walk = self.T, self.walk  # noqa: N806
        parallel = walk.samples > 1 and walk.samples * walk.trees * _DEPTH >= _WORTH_THREADS
        groups = -(-walk.samples // walk.together)
        with tvm.script.ir_builder.IRBuilder() as builder:
            with (T.parallel if parallel else T.serial)(0, groups) as self.group:
                with self._samples(), T.serial(0, walk.targets) as target:
                    self.y[self.sample, target] = self._number(_STARTS[walk.how])
                with T.serial(0, walk.trees) as tree, self._samples():
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

    def _tree(self, tree: Any) -> None:
        """One sample down one tree."""
        T = self.T  # noqa: N806
        node = T.buffer_proxy(T.alloc_buffer((1,), "int32", scope="local"))
        node[0] = self.roots[tree]
        with T.While(tirx.NE(self.child[2 * node[0]], node[0])):
            node[0] = self.child[2 * node[0] + self._side(node[0])]
        with T.serial(0, self.starts[node[0] + 1] - self.starts[node[0]]) as step:
            at = self.starts[node[0]] + step
            place = self.sample, self.target[at]
            self.y[place] = self._with(self.y[place], self.weight[at])

    def _side(self, node: Any) -> Any:
        """The place of the child: 1 where the feature is no more than the threshold, else 0."""
        value = self.x[self.sample, self.feature[node]]
        is_less = tirx.Cast("int32", value <= self.threshold[node])
        if not self.walk.has_missing:
            return is_less
        return tirx.Select(tirx.isnan(value), self.missing[node], is_less)

    def _with(self, sum_: Any, weight: Any) -> Any:
        if self.walk.how == "SUM":
            return sum_ + weight
        return (tirx.min if self.walk.how == "MIN" else tirx.max)(sum_, weight)

    def _fill(self) -> None:
        """Zeros for targets that no tree weighed for."""
        start = self._number(_STARTS[self.walk.how])
        with self.T.serial(0, self.walk.targets) as target:
            value = self.y[self.sample, target]
            self.y[self.sample, target] = tirx.Select(
                tirx.EQ(value, start), self._number(0.0), value
            )

    def _number(self, value: float) -> Any:
        return tirx.const(value, self.walk.dtype)
