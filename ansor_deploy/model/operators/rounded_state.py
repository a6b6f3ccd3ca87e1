"""The state of a recurrent layer as steps of a byte, of the range that it has at a step.

    scale = (max(h, 0) - min(h, 0)) / 255 ; zero = round(-min(h, 0) / scale)
    steps = round(h / scale) + zero, of 0 to 255

That is DynamicQuantizeLinear of all sequences' units.
"""

from __future__ import annotations

from typing import Any

from ..._lazy_tvm import tirx
from .activations import number

_MOST = 255


class RoundedState:
    """Statements that round a state [batch, panels, lanes], and what they make.

    T: builds statements. hidden: units, behind which lanes are padding. steps: bytes
    [batch, units]; or, if not in bytes, numbers of float32, less zero, as the state lies.
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
        """The number that a step stands for, once the state is rounded."""
        return self._ends[2]

    @property
    def zero(self) -> Any:
        """The steps that stand for zero."""
        return self._ends[3]

    def round(self, state: Any) -> None:
        """Make steps of a state."""
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
        """The least and the greatest number of each lane, and zero."""
        batch, panels, lanes = self.shape
        with self.T.vectorized(0, lanes) as lane:
            self._least[lane] = number(0)
            self._most[lane] = number(0)
        with self.T.grid(batch, panels) as (b, p), self.T.vectorized(0, lanes) as lane:
            one = self._counted(state[b, p, lane], p * lanes + lane)
            self._least[lane] = tirx.min(self._least[lane], one)
            self._most[lane] = tirx.max(self._most[lane], one)

    def _counted(self, value: Any, unit: Any) -> Any:
        """A number of the state, zero for padding, which some functions make other numbers of."""
        _, panels, lanes = self.shape
        padded = self.hidden < panels * lanes
        return tirx.Select(unit < self.hidden, value, number(0)) if padded else value

    def _by_all(self) -> None:
        """The ends of all lanes, the scale and the zero point."""
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
