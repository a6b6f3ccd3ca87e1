"""The kernel of a recurrent layer: the loop over time, with what each step multiplies and adds.

    for t: for p (parallel where it pays): for b:
        a[g, l]  = x[t, b, p, g, l]                          gates g of the units of panel p
        a[g, l] += h[b, k] * w[p, k, g, l]     for k         in registers, l vectorised
        n[b, p, l], c[b, p, l] = cell(a, h, c)
      h = n ; y[t] = n

x is the product of all steps' inputs, made by a matrix multiplication before. Units are padded to
whole panels; the padding's weights are zero. The program is complete as it stands: it has no loops
that a rule would schedule, so no task is made of it, as of TVM's sorts and scans.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..._lazy_tvm import tirx, tvm
from .activations import number

# Multiplications of one step from which on a parallel loop takes less time than it takes to start.
_WORTH_THREADS = 1 << 19

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Layer:
    """One direction of a recurrent layer.

    cell: LSTM, GRU or RNN. hidden: units. lanes: units of a panel. functions: f, g, h of ONNX.
    clip: bound of what goes into f and g, or None. masked: sequences have lengths of their own.
    """

    cell: str
    steps: int
    batch: int
    hidden: int
    lanes: int
    functions: tuple[Function, ...]
    reverse: bool = False
    masked: bool = False
    clip: float | None = None
    input_forget: bool = False
    linear_before_reset: bool = False

    @property
    def gates(self) -> int:
        """Gates of a unit."""
        return {"LSTM": 4, "GRU": 3, "RNN": 1}[self.cell]

    @property
    def panels(self) -> int:
        """Panels of units, the last one padded."""
        return -(-self.hidden // self.lanes)

    @property
    def results(self) -> int:
        """Tensors that it makes: y, h, and c of an LSTM."""
        return 3 if self.cell == "LSTM" else 2

    def compute(self, *given: Any) -> Any:
        """The layer in TE, of x, the recurrent weights, states, and what else the cell has.

        given: x[steps, batch, panels, gates, lanes], w[panels, hidden, gates, lanes], h[batch,
        panels, lanes]; c as h and peepholes [3, panels, lanes] of an LSTM; recurrent biases
        [panels, lanes] of a GRU; lengths [batch] if masked. Makes y[steps, batch, panels, lanes],
        h, and c of an LSTM.
        """
        state = (self.batch, self.panels, self.lanes)
        shapes = [(self.steps, *state), *([state] * (self.results - 1))]
        build = lambda ins, outs: _Program(self, ins, outs).build()  # noqa: E731
        dtypes = ["float32"] * len(shapes)
        return tvm.te.extern(shapes, given, build, name=self.cell.lower(), dtype=dtypes)


class _Program:
    """The statements of a layer, written once for all cells."""

    def __init__(self, layer: Layer, ins: Sequence[Any], outs: Sequence[Any]) -> None:
        self.layer, self.T = layer, tvm.script.ir_builder.tirx
        self.x, self.w, self.h0, *rest = map(self.T.buffer_proxy, ins)
        self.lengths: Any = rest.pop() if layer.masked else None
        self.rest = rest
        self.y, self.h, *others = map(self.T.buffer_proxy, outs)
        self.c: Any = others[0] if others else None

    def build(self) -> Any:
        """The layer's whole statement."""
        T = self.T  # noqa: N806
        with tvm.script.ir_builder.IRBuilder() as builder:
            with T.seq_scope():
                self._copy(self.h0, self.h)
                if self.c is not None:
                    self._copy(self.rest[0], self.c)
                self.new = self._state()
                if self._in_two_passes:
                    self.update, self.reset = self._state(), self._state()
                with T.serial(0, self.layer.steps) as self.t:
                    self._step()
            return builder.get()

    @property
    def _in_two_passes(self) -> bool:
        """Whether the reset gate acts on the state before it is multiplied."""
        return self.layer.cell == "GRU" and not self.layer.linear_before_reset

    def _state(self) -> Any:
        layer = self.layer
        shape = (layer.batch, layer.panels, layer.lanes)
        return self.T.buffer_proxy(self.T.alloc_buffer(shape, "float32"))

    @contextmanager
    def _units(self) -> Iterator[tuple[Any, Any, Any]]:
        """A loop over all units of all sequences."""
        T, layer = self.T, self.layer  # noqa: N806
        batches, panels = T.serial(0, layer.batch), T.serial(0, layer.panels)
        with batches as b, panels as p, T.vectorized(0, layer.lanes) as lane:
            yield b, p, lane

    def _copy(self, source: Any, target: Any) -> None:
        with self._units() as (b, p, lane):
            target[b, p, lane] = source[b, p, lane]

    def _step(self) -> None:
        layer = self.layer
        if self._in_two_passes:
            self._panels(self.h, (0, 1), self._update_and_reset)
            self._panels(self.reset, (2,), self._candidate)
        else:
            cell = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[layer.cell]
            self._panels(self.h, range(layer.gates), cell)
        with self._units() as (b, p, lane):
            new, at = self.new[b, p, lane], self._time(b)
            self.y[at, b, p, lane] = self._if_valid(b, new, number(0))
            self.h[b, p, lane] = self._if_valid(b, new, self.h[b, p, lane])

    def _panels(self, state: Any, gates: Sequence[int], cell: Callable[..., None]) -> None:
        """Sums of some gates of all units, and what the cell makes of them."""
        T, layer = self.T, self.layer  # noqa: N806
        work = len(gates) * layer.hidden * layer.hidden * layer.batch
        loop = T.parallel if work >= _WORTH_THREADS and layer.panels > 1 else T.serial
        with loop(0, layer.panels) as p, T.serial(0, layer.batch) as b:
            shape = (len(gates), layer.lanes)
            sums = T.buffer_proxy(T.alloc_buffer(shape, "float32", scope="local"))
            for at, gate in enumerate(gates):
                with T.vectorized(0, layer.lanes) as lane:
                    sums[at, lane] = self._start(b, p, gate, lane)
            with T.serial(0, layer.hidden) as k:
                for at, gate in enumerate(gates):
                    with T.vectorized(0, layer.lanes) as lane:
                        weight = self.w[p, k, gate, lane]
                        left = state[b, k // layer.lanes, k % layer.lanes]
                        sums[at, lane] = sums[at, lane] + left * weight
            with T.vectorized(0, layer.lanes) as lane:
                cell(b, p, lane, [sums[at, lane] for at in range(len(gates))])

    def _start(self, b: Any, p: Any, gate: int, lane: Any) -> Any:
        """What a gate's sum starts from: the inputs' part, but where a reset comes between."""
        if self.layer.cell == "GRU" and gate == 2 and not self._in_two_passes:
            return self.rest[0][p, lane]
        return self.x[self._time(b), b, p, gate, lane]

    def _lstm(self, b: Any, p: Any, lane: Any, sums: list[Any]) -> None:
        f, g = map(self._clipped, self.layer.functions[:2])
        h = self.layer.functions[2]  # ONNX Runtime clips gates alone
        peephole = self.rest[1]
        before = self.c[b, p, lane]
        i = f(sums[0] + peephole[0, p, lane] * before)
        forget = number(1) - i if self.layer.input_forget else None
        forget = forget if forget is not None else f(sums[2] + peephole[2, p, lane] * before)
        after = forget * before + i * g(sums[3])
        o = f(sums[1] + peephole[1, p, lane] * after)
        self.new[b, p, lane] = o * h(after)
        self.c[b, p, lane] = self._if_valid(b, after, before)

    def _gru(self, b: Any, p: Any, lane: Any, sums: list[Any]) -> None:
        f, g = map(self._clipped, self.layer.functions)
        reset = f(sums[1])
        inputs = self.x[self._time(b), b, p, 2, lane]
        self._mix(b, p, lane, f(sums[0]), g(inputs + reset * sums[2]))

    def _update_and_reset(self, b: Any, p: Any, lane: Any, sums: list[Any]) -> None:
        f = self._clipped(self.layer.functions[0])
        self.update[b, p, lane] = f(sums[0])
        self.reset[b, p, lane] = f(sums[1]) * self.h[b, p, lane]

    def _candidate(self, b: Any, p: Any, lane: Any, sums: list[Any]) -> None:
        g = self._clipped(self.layer.functions[1])
        self._mix(b, p, lane, self.update[b, p, lane], g(sums[0]))

    def _mix(self, b: Any, p: Any, lane: Any, update: Any, candidate: Any) -> None:
        self.new[b, p, lane] = (number(1) - update) * candidate + update * self.h[b, p, lane]

    def _rnn(self, b: Any, p: Any, lane: Any, sums: list[Any]) -> None:
        self.new[b, p, lane] = self._clipped(self.layer.functions[0])(sums[0])

    def _clipped(self, function: Function) -> Function:
        bound = self.layer.clip
        if bound is None:
            return function
        low, high = (number(sign * bound) for sign in (-1, 1))
        return lambda x: function(tirx.max(low, tirx.min(high, x)))

    def _time(self, b: Any) -> Any:
        """The step of a sequence that is computed now: of a reversed one, from its own end."""
        if not self.layer.reverse:
            return self.t
        if self.lengths is None:
            return self.layer.steps - 1 - self.t
        return tirx.Select(self._valid(b), self.lengths[b] - 1 - self.t, self.t)

    def _valid(self, b: Any) -> Any:
        return self.t < self.lengths[b]

    def _if_valid(self, b: Any, value: Any, otherwise: Any) -> Any:
        return value if self.lengths is None else tirx.Select(self._valid(b), value, otherwise)
