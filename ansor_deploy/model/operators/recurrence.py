"""The program of a recurrent layer: the loop over time, with what each step multiplies and adds.

    for t:
        step:
            for b, p, g, l: for k: s[b, p, g, l] += h[b, k] * w[p, k, g, l]
            for b, p, l: n[b, p, l], d[b, p, l] = cell(s[b, p, :, l], x[t, b, p, :, l], h, c)
        h, c = n, d ; y[t] = n

x is the product of all steps' inputs, made by a matrix multiplication before. There are G gates of
the L units of each of P panels, the last of which may be padded: its weights are zero. The GRU of
which the reset gate comes before the product has two such pairs of loops a step. A step is a block
around its loops, so that a rule (`rules/recurrence.py`) can schedule them: what carries from one to
the next stands outside of it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..._lazy_tvm import tirx, tvm
from .activations import number

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
    def passes(self) -> tuple[range, ...]:
        """The gates whose sums a step makes at once: all, but where a reset comes between."""
        if self.cell == "GRU" and not self.linear_before_reset:
            return range(2), range(2, 3)
        return (range(self.gates),)

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

        given: x[steps, batch, panels, gates, lanes], of each pass w[panels, hidden, its gates,
        lanes], h[batch, panels, lanes]; c as h and peepholes [3, panels, lanes] of an LSTM;
        recurrent biases [panels, lanes] of a GRU in one pass; lengths [batch] if masked. Makes
        y[steps, batch, panels, lanes], h, and c of an LSTM.
        """
        state = (self.batch, self.panels, self.lanes)
        shapes = [(self.steps, *state), *([state] * (self.results - 1))]
        build = lambda ins, outs: _Program(self, ins, outs).build()  # noqa: E731
        dtypes = ["float32"] * len(shapes)
        # Those that TVM would declare begin at an offset, and so could not be written as a text.
        ins = [tirx.decl_buffer(one.shape, one.dtype, layout=None) for one in given]
        outs = [tirx.decl_buffer(shape, "float32", layout=None) for shape in shapes]
        name = self.cell.lower()
        return tvm.te.extern(shapes, given, build, name, dtypes, in_buffers=ins, out_buffers=outs)


class _Program:
    """The statements of a layer, written once for all cells."""

    def __init__(self, layer: Layer, ins: Sequence[Any], outs: Sequence[Any]) -> None:
        self.layer, self.T = layer, tvm.script.ir_builder.tirx
        self.x, *rest = map(self.T.buffer_proxy, ins)
        self.weights = [rest.pop(0) for _ in layer.passes]
        self.h0 = rest.pop(0)
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
                self.after: Any = None if self.c is None else self._state()
                with T.serial(0, self.layer.steps) as t:
                    with T.sblock("step"):
                        self.t = T.axis.opaque(self.layer.steps, t)
                        self._step()
                    self.t = t
                    self._carry()
            return builder.get()

    def _state(self) -> Any:
        layer = self.layer
        shape = (layer.batch, layer.panels, layer.lanes)
        return self.T.buffer_proxy(self.T.alloc_buffer(shape, "float32", layout=None))

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
        if len(self.layer.passes) > 1:
            self.update, self.reset = self._scratch(), self._scratch()
            self._pass(0, self.h, self._update_and_reset)
            self._pass(1, self.reset, self._candidate)
        else:
            cell = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[self.layer.cell]
            self._pass(0, self.h, cell)

    def _carry(self) -> None:
        """What a step has made becomes the state, and a part of the output."""
        with self._units() as (b, p, lane):
            new, at = self.new[b, p, lane], self._time(b)
            self.y[at, b, p, lane] = self._if_valid(b, new, number(0))
            self.h[b, p, lane] = self._if_valid(b, new, self.h[b, p, lane])
            if self.c is not None:
                after = self.after[b, p, lane]
                self.c[b, p, lane] = self._if_valid(b, after, self.c[b, p, lane])

    def _scratch(self, *gates: int) -> Any:
        """Numbers of a step, of so many gates of each unit."""
        layer = self.layer
        shape = (layer.batch, layer.panels, *gates, layer.lanes)
        return self.T.buffer_proxy(self.T.sblock_alloc_buffer(shape, "float32", layout=None))

    def _pass(self, at: int, state: Any, cell: Callable[..., None]) -> None:
        """Sums of some gates of all units, and what the cell makes of them."""
        T, layer = self.T, self.layer  # noqa: N806
        weights, gates = self.weights[at], layer.passes[at]
        outer, lanes, depth = (layer.batch, layer.panels), layer.lanes, layer.hidden
        sums = self._scratch(len(gates))
        with T.grid(*outer, len(gates), lanes, depth) as loops, T.sblock(f"product{at}"):
            b, p, g, lane, k = T.axis.remap("SSSSR", loops)
            with T.init():
                sums[b, p, g, lane] = number(0)
            left = state[b, k // lanes, k % lanes]
            sums[b, p, g, lane] = sums[b, p, g, lane] + left * weights[p, k, g, lane]
        with T.grid(*outer, lanes) as loops, T.sblock(f"cell{at}"):
            b, p, lane = T.axis.remap("SSS", loops)
            cell(b, p, lane, [sums[b, p, gate, lane] for gate in range(len(gates))])

    def _input(self, b: Any, p: Any, gate: int, lane: Any) -> Any:
        """The inputs' part of a gate's sum."""
        return self.x[self._time(b), b, p, gate, lane]

    def _lstm(self, b: Any, p: Any, lane: Any, sums: list[Any]) -> None:
        f, g = map(self._clipped, self.layer.functions[:2])
        h = self.layer.functions[2]  # ONNX Runtime clips gates alone
        peephole = self.rest[1]
        before = self.c[b, p, lane]
        sums = [one + self._input(b, p, gate, lane) for gate, one in enumerate(sums)]
        i = f(sums[0] + peephole[0, p, lane] * before)
        forget = number(1) - i if self.layer.input_forget else None
        forget = forget if forget is not None else f(sums[2] + peephole[2, p, lane] * before)
        after = forget * before + i * g(sums[3])
        o = f(sums[1] + peephole[1, p, lane] * after)
        self.new[b, p, lane] = o * h(after)
        self.after[b, p, lane] = after

    def _gru(self, b: Any, p: Any, lane: Any, sums: list[Any]) -> None:
        f, g = map(self._clipped, self.layer.functions)
        update, reset, inputs = (self._input(b, p, gate, lane) for gate in range(3))
        again = f(sums[1] + reset) * (sums[2] + self.rest[0][p, lane])
        self._mix(b, p, lane, f(sums[0] + update), g(inputs + again))

    def _update_and_reset(self, b: Any, p: Any, lane: Any, sums: list[Any]) -> None:
        f = self._clipped(self.layer.functions[0])
        self.update[b, p, lane] = f(sums[0] + self._input(b, p, 0, lane))
        self.reset[b, p, lane] = f(sums[1] + self._input(b, p, 1, lane)) * self.h[b, p, lane]

    def _candidate(self, b: Any, p: Any, lane: Any, sums: list[Any]) -> None:
        g = self._clipped(self.layer.functions[1])
        candidate = g(sums[0] + self._input(b, p, 2, lane))
        self._mix(b, p, lane, self.update[b, p, lane], candidate)

    def _mix(self, b: Any, p: Any, lane: Any, update: Any, candidate: Any) -> None:
        self.new[b, p, lane] = (number(1) - update) * candidate + update * self.h[b, p, lane]

    def _rnn(self, b: Any, p: Any, lane: Any, sums: list[Any]) -> None:
        function = self._clipped(self.layer.functions[0])
        self.new[b, p, lane] = function(sums[0] + self._input(b, p, 0, lane))

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
