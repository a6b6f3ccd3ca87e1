"""ONNX Runtime as the oracle of a model: its outputs, and how far rounding moves them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ModelError
from ...model.dequantised.operators import in_conversions
from ...model.graph.activations import in_float32, rounds_rows
from ...model.graph.noise import with_noise
from ...model.graph.steps import steps_of
from ...model.onnx.bind import with_open_inputs
from ...model.onnx.skeleton import nodes
from ...model.operators.wide_sums import with_wide_sums
from ...system.machine_fault import raise_if_fault
from .draws import seeded_inputs
from .edges import index_extents
from .session import Session

if TYPE_CHECKING:
    import onnx

    from ...runtime.interface import TensorInfo

    Model = Callable[[], onnx.ModelProto]

SAMPLES = 4  # runs with noise
# Operators that put rows in an order, which rounding may decide.
_SORTS = {"ArgMax", "ArgMin", "NonMaxSuppression", "TopK", "Unique"}
_COUNTS = 5  # the position of GroupQueryAttention's input with the counts of keys
_SEED = 20_260_101  # of the noise: the same in each build


class Oracle:
    """ONNX Runtime on a model; ModelError if it refuses the model. threads: 0 for all cores.

    extents: by the names of inputs of indices, the rows of the table that they look into. steps: by
    outputs, the distance of neighbouring numbers of a quantised model (`model/graph/steps.py`), 0
    for a model that rounds rows of matmuls; None for other models. sorts: whether rounding may
    decide which row of an output comes first.

    It is made before the costly part of a build, since a model that cannot be verified is not worth
    tuning.
    """

    def __init__(self, proto: onnx.ModelProto, threads: int = 0) -> None:
        self.extents = index_extents(proto)
        self.steps = steps_of(proto)
        if self.steps is None and rounds_rows(proto):
            self.steps = {output.name: 0.0 for output in proto.graph.output}
        self.sorts = any(node.op_type in _SORTS for node in nodes(proto.graph))
        self._masks = _masks(proto)
        self.proto = in_float32(proto)
        # Each of its threads rounds its own rows of a state, by their own range: so one thread.
        rounded = any(node.op_type == "DynamicQuantizeLSTM" for node in nodes(proto.graph))
        self._threads = 1 if rounded else threads
        self._session = self._first()
        self.name = self._session.engine

    def _first(self) -> Session:
        """The session of the model: with open sizes if a branch contradicts those that are known.

        No run takes that branch, and ONNX Runtime infers its shapes nevertheless.
        """
        try:
            return self._opened(lambda: self.proto)
        except ModelError:
            if not any(node.op_type == "If" for node in nodes(self.proto.graph)):
                raise
        self.proto = with_open_inputs(self.proto)
        return self._opened(lambda: self.proto)

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
        return self._session.run(feed)

    def second(self, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray] | None:
        """As `outputs`, but run node by node as the model is written, without fusion.

        Operators on integers stand for conversions, and are written as these. None where it does
        not run like that, and for a model that is not quantised.
        """
        if self.steps is None or self._as_written is None:
            return None
        try:
            return self._as_written.run(feed)
        except ModelError:
            return None

    def samples(self, feed: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
        """As `outputs`, several times with noise; empty where the model does not run with noise."""
        return _runs(self._noisy, feed, SAMPLES)

    def alike(self, feed: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
        """As `samples`, with noise that is equal where the elements of a tensor are."""
        return [one for session in self._alike for one in _runs(session, feed, 1)]

    @cached_property
    def _as_written(self) -> Session | None:
        """The session without fusion, made at first use; None where it cannot be made."""
        return self._perhaps(lambda: in_conversions(self.proto), as_written=True)

    @cached_property
    def _noisy(self) -> Session | None:
        """The session of the model with noise, made at first use; None where it cannot be made."""
        return self._perhaps(lambda: with_noise(self.proto, _SEED))

    @cached_property
    def _alike(self) -> list[Session | None]:
        """The sessions for `alike`, made at first use; each has the same noise in all runs."""
        seeds = range(_SEED, _SEED + SAMPLES)
        made = (partial(with_noise, self.proto, seed, alike=True) for seed in seeds)
        return [*map(self._perhaps, made)]

    def _perhaps(self, make: Model, *, as_written: bool = False) -> Session | None:
        """A session of a variant of the model; None where ONNX Runtime refuses that."""
        try:
            return self._opened(make, as_written=as_written)
        except Exception as error:  # noqa: BLE001 - noise, or an operator that needs fusion
            raise_if_fault(error)
            return None

    def _opened(self, make: Model, *, as_written: bool = False) -> Session:
        return Session(lambda: with_wide_sums(make()), self._threads, as_written=as_written)


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
