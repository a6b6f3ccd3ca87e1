"""ONNX Runtime as the oracle of a model: its outputs, and how far rounding moves them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ModelError
from ...model.graph.activations import in_float32, rounds_rows
from ...model.graph.steps import steps_of
from ...model.onnx.bind import at_all_sizes
from ...model.onnx.skeleton import nodes
from .draws import seeded_inputs
from .edges import index_extents
from .session import Session
from .ways import Ways

if TYPE_CHECKING:
    import onnx

    from ...runtime.interface import TensorInfo

# Operators that put rows in an order, which rounding may decide.
_SORTS = {"ArgMax", "ArgMin", "NonMaxSuppression", "TopK", "Unique"}
_COUNTS = 5  # the position of GroupQueryAttention's input with the counts of keys


def oracles_of(protos: Sequence[onnx.ModelProto], threads: int = 0) -> list[Oracle]:
    """The oracles of a model in several shapes. ModelError, threads: as for `Oracle`.

    They run the same sessions, with open sizes, so that the weights are in memory once.
    """
    if len(protos) > 1 and (whole := at_all_sizes(protos)) is not None:
        try:
            ways = Ways(in_float32(whole), threads)
            return [Oracle(proto, threads, ways) for proto in protos]
        except ModelError:  # it may take each of the shapes, though it takes no open ones
            pass
    return [Oracle(proto, threads) for proto in protos]


class Oracle:
    """ONNX Runtime on a model; ModelError if it refuses the model. threads: 0 for all cores.

    extents: by the names of inputs of indices, the rows of the table that they look into. steps: by
    outputs, the distance of neighbouring numbers of a quantised model (`model/graph/steps.py`), 0
    for a model that rounds rows of matmuls; None for other models. sorts: whether rounding may
    decide which row of an output comes first.

    ways: the sessions that it uses, by default those of this model. It is made before the costly
    part of a build, since a model that cannot be verified is not worth tuning.
    """

    def __init__(self, proto: onnx.ModelProto, threads: int = 0, ways: Ways | None = None) -> None:
        self.extents = index_extents(proto)
        self.steps = steps_of(proto)
        if self.steps is None and rounds_rows(proto):
            self.steps = {output.name: 0.0 for output in proto.graph.output}
        self.sorts = any(node.op_type in _SORTS for node in nodes(proto.graph))
        self._masks = _masks(proto)
        self.proto = in_float32(proto)
        self.ways = ways or Ways(self.proto, threads)
        self.name = self.ways.plain.engine

    def ask(
        self, inputs: Sequence[TensorInfo], seed: int
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """(seeded inputs, outputs).

        Integer inputs are tried as indices of a shrinking range, since a graph does not say how
        many rows the table has that they look into. Masks are ones. ModelError where all inputs are
        refused.
        """
        for upper in (64, 8, 2, 1):
            feed = seeded_inputs(inputs, seed, upper)
            feed |= {name: np.ones_like(feed[name]) for name in self._masks & feed.keys()}
            try:
                return feed, self.outputs(feed)
            except ModelError as error:
                failure = error
        raise failure

    def outputs(self, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """ONNX Runtime's outputs for inputs; ModelError if it refuses them.

        Both are by name, with the shapes and dtypes of the graph.
        """
        return self.ways.plain.run(feed)

    def second(self, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray] | None:
        """As `outputs`, but run node by node as the model is written, without fusion.

        Operators on integers stand for conversions, and are written as these. None where it does
        not run like that, and for a model that is not quantised.
        """
        if self.steps is None or self.ways.as_written is None:
            return None
        try:
            return self.ways.as_written.run(feed)
        except ModelError:
            return None

    def samples(self, feed: dict[str, np.ndarray], count: int) -> list[dict[str, np.ndarray]]:
        """As `outputs`, `count` times with noise; empty where it does not run with noise."""
        return _runs(self.ways.noisy, feed, count)

    def alike(self, feed: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
        """As `samples`, with noise that is equal where the elements of a tensor are."""
        return [one for session in self.ways.alike for one in _runs(session, feed, 1)]


def _runs(
    session: Session | None, feed: dict[str, np.ndarray], count: int
) -> list[dict[str, np.ndarray]]:
    """What a session makes of inputs, so many times; empty where it does not run."""
    try:
        return [session.run(feed) for _ in range(count)] if session else []
    except ModelError:  # with noise, indices may be out of range
        return []


def _masks(proto: onnx.ModelProto) -> set[str]:
    """The inputs from which a decoder's counts of keys are computed.

    The counts must cover all tokens that are given: a mask of ones has that effect.
    """
    known = [node for node in proto.graph.node if node.op_type == "GroupQueryAttention"]
    counts = {node.input[_COUNTS] for node in known}
    wanted = set(counts)
    for node in reversed(proto.graph.node):
        if node.op_type != "Shape" and not wanted.isdisjoint(node.output):
            wanted.update(node.input)
    return {value.name for value in proto.graph.input} & (wanted - counts)
