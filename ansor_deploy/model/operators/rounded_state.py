"""The state of a recurrent layer rounded to steps of a byte, by its range at each time.

    scale = (max(h, 0) - min(h, 0)) / 255 ; zero = round(-min(h, 0) / scale)
    steps = round(h / scale) + zero, of 0 to 255

This is DynamicQuantizeLinear over the units of all sequences.
"""

from __future__ import annotations

from typing import Any

from ..._lazy_tvm import tirx
from .activations import number

_MOST = 255


class RoundedState:
    """Statements that round a state [batch, panels, lanes], and their results.

    T: builds statements. hidden: the number of units; lanes behind them are padding. steps: bytes
    [batch, units]; if not in bytes, float32 steps minus zero, in the layout of the state.
    """

    def __init__(self, T: Any, shape: tuple[int, int, int], hidden: int, *, in_bytes: bool) -> None:  # noqa: N803
        self.T, self.shape, self.hidden, self.in_bytes = T, shape, hidden, in_bytes
        batch, panels, lanes = shape
        self.steps = self._buffer(batch, panels * lanes, dtype="uint8")
        if not in_bytes:
            self.steps = self._buffer(*shape)
        self._least, self._most = self._buffer(lanes), self._buffer(lanes)
        self._ends = self._buffer(4)

    @property
    def scale(self) -> Any:
        """The scale, once the state is rounded."""
        return self._ends[2]

    @property
    def zero(self) -> Any:
        """The zero point, once the state is rounded."""
        return self._ends[3]

    def round(self, state: Any) -> None:
        """Round a state to steps."""
        self._by_lane(state)
        self._by_all()
        batch, panels, lanes = self.shape
        with self.T.grid(batch, panels) as (b, p), self.T.vectorized(0, lanes) as lane:
            nearest = tirx.round(state[b, p, lane] / self.scale)
            held = _held(nearest + self.zero)
            if self.in_bytes:
                self.steps[b, p * lanes + lane] = tirx.Cast("uint8", held)
            else:
                self.steps[b, p, lane] = held - self.zero

    def _by_lane(self, state: Any) -> None:
        """Find the minimum and maximum of each lane, and zero."""
        batch, panels, lanes = self.shape
        with self.T.vectorized(0, lanes) as lane:
            self._least[lane] = number(0)
            self._most[lane] = number(0)
        with self.T.grid(batch, panels) as (b, p), self.T.vectorized(0, lanes) as lane:
            one = self._counted(state[b, p, lane], p * lanes + lane)
            self._least[lane] = tirx.min(self._least[lane], one)
            self._most[lane] = tirx.max(self._most[lane], one)

    def _counted(self, value: Any, unit: Any) -> Any:
        """An element of the state; zero for padding, which activations may have changed."""
        _, panels, lanes = self.shape
        padded = self.hidden < panels * lanes
        return tirx.Select(unit < self.hidden, value, number(0)) if padded else value

    def _by_all(self) -> None:
        """Find the range of all lanes, the scale and the zero point."""
        for at in range(2):
            self._ends[at] = number(0)
        with self.T.serial(0, self.shape[2]) as lane:
            self._ends[0] = tirx.min(self._ends[0], self._least[lane])
            self._ends[1] = tirx.max(self._ends[1], self._most[lane])
        width = self._ends[1] - self._ends[0]
        self._ends[2] = tirx.Select(width == number(0), number(1), width / number(_MOST))
        self._ends[3] = tirx.round(_held(-self._ends[0] / self.scale))

    def _buffer(self, *shape: int, dtype: str = "float32") -> Any:
        return self.T.buffer_proxy(self.T.alloc_buffer(shape, dtype, layout=None))


def _held(x: Any) -> Any:
    return tirx.max(number(0), tirx.min(number(_MOST), x))
