"""The ways in which ONNX Runtime runs a model to judge a library: as it is, and with noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ...errors import ModelError
from ...model.dequantised.operators import in_conversions
from ...model.graph.noise import with_noise
from ...model.onnx.bind import with_open_inputs
from ...model.onnx.skeleton import nodes
from ...model.operators.wide_sums import with_wide_sums
from ...system.machine_fault import raise_if_fault
from .session import Session

if TYPE_CHECKING:
    import onnx

    Model = Callable[[], onnx.ModelProto]

SAMPLES = 4  # runs with noise
_SEED = 20_260_101  # of the noise: the same in each build


class Ways:
    """The sessions of a model; ModelError if ONNX Runtime refuses it. threads: 0 for all cores.

    All but the first are made when they are first used. They are None where ONNX Runtime refuses
    such a variant of the model.
    """

    def __init__(self, proto: onnx.ModelProto, threads: int) -> None:
        self._proto = proto
        # Each of its threads rounds its own rows of a state, by their own range: so one thread.
        rounded = any(node.op_type == "DynamicQuantizeLSTM" for node in nodes(proto.graph))
        self._threads = 1 if rounded else threads
        self.plain = self._first()

    def _first(self) -> Session:
        """The session of the model: with open sizes if a branch contradicts those that are known.

        No run takes that branch, and ONNX Runtime infers its shapes nevertheless.
        """
        try:
            return self._opened(lambda: self._proto)
        except ModelError:
            if not any(node.op_type == "If" for node in nodes(self._proto.graph)):
                raise
        self._proto = with_open_inputs(self._proto)
        return self._opened(lambda: self._proto)

    @cached_property
    def as_written(self) -> Session | None:
        """Node by node, without fusion. Operators on integers are written as conversions."""
        return self._perhaps(lambda: in_conversions(self._proto), as_written=True)

    @cached_property
    def noisy(self) -> Session | None:
        """With noise, other noise in each run."""
        return self._perhaps(lambda: with_noise(self._proto, _SEED))

    @cached_property
    def alike(self) -> list[Session | None]:
        """With noise that is equal where the elements of a tensor are; each with other noise."""
        seeds = range(_SEED, _SEED + SAMPLES)
        made = (partial(with_noise, self._proto, seed, alike=True) for seed in seeds)
        return [*map(self._perhaps, made)]

    def _perhaps(self, make: Model, *, as_written: bool = False) -> Session | None:
        try:
            return self._opened(make, as_written=as_written)
        except Exception as error:  # noqa: BLE001 - noise, or an operator that needs fusion
            raise_if_fault(error)
            return None

    def _opened(self, make: Model, *, as_written: bool = False) -> Session:
        return Session(lambda: with_wide_sums(make()), self._threads, as_written=as_written)
