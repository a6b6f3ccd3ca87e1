"""The program of a recurrent layer: a loop over time with the products and cells of each step.

    parallel d: for t:
        step:
            for b, p, g, l: for k: s[b, p, g, l] += h[d, b, k] * w[d, p, k, g, l]
            for b, p, l: n[b, p, l], m[b, p, l] = cell(s[b, p, :, l], x[t, b, d, p, :, l], h, c)
        h[d], c[d] = n, m ; y[t, d] = n

x is the product of all steps' inputs, which a matrix multiplication makes before. d is the
direction; there are one or two, and neither waits for the other. Each of the P panels has G gates
of L units; the last panel may be padded with zero weights. A GRU whose reset gate comes before the
product has two such pairs of loops in a step. A step is a block around its loops, so that a rule
(`rules/recurrence.py`) can schedule them: the state that goes from one step to the next is outside
of it.

A layer with integer weights multiplies a quantised h: before each step, h is rounded to bytes by
its own range, and each sum is scaled after the step. Where a processor adds up four products of
bytes at once, weights are bytes as well, and k is a group of four. Elsewhere all is float32, which
holds integers below 2**24 exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..._lazy_tvm import tirx, tvm
from ...marks.dot import STEPS
from .activations import number
from .rounded_state import RoundedState

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Layer:
    """A recurrent layer.

    cell: LSTM, GRU or RNN. hidden: the number of units. lanes: units of a panel. functions: ONNX's
    f, g, h for each direction. reverses: for each direction, whether it starts at the end. clip: a
    bound on the inputs of f and g, or None. masked: sequences have lengths of their own. rounded:
    recurrent weights are integers, and the state is rounded to integers before the product.
    by_fours: both are bytes, and four of their products are added up at once.
    """

    cell: str
    steps: int
    batch: int
    hidden: int
    lanes: int
    functions: tuple[tuple[Function, ...], ...]
    reverses: tuple[bool, ...] = (False,)
    masked: bool = False
    rounded: bool = False
    by_fours: bool = False
    clip: float | None = None
    input_forget: bool = False
    linear_before_reset: bool = False

    @property
    def directions(self) -> int:
        """The number of directions in which it goes through its inputs."""
        return len(self.reverses)

    @property
    def gates(self) -> int:
        """Gates of a unit."""
        return {"LSTM": 4, "GRU": 3, "RNN": 1}[self.cell]

    @property
    def passes(self) -> tuple[range, ...]:
        """The gates whose sums are computed together: all, unless a reset comes in between."""
        if self.cell == "GRU" and not self.linear_before_reset:
            return range(2), range(2, 3)
        return (range(self.gates),)

    @property
    def panels(self) -> int:
        """The number of panels; the last one may be padded."""
        return -(-self.hidden // self.lanes)

    @property
    def results(self) -> int:
        """The number of tensors that it makes: y, h, and c for an LSTM."""
        return 3 if self.cell == "LSTM" else 2

    def compute(self, *given: Any) -> Any:
        """The layer in TE, from x, the recurrent weights, the states, and the cell's other tensors.

        given: x[steps, batch, directions, panels, gates, lanes]. Then, each with one more axis in
        front for the direction: w[panels, hidden, its gates, lanes] for each pass; h[batch, panels,
        lanes]; for an LSTM, c like h and peepholes [3, panels, lanes]; for a GRU in one pass,
        recurrent biases [panels, lanes]; if rounded, the weights' scales [panels, gates, lanes]; if
        by fours, also their sums over units, and the weights are [panels, hidden / 4, gates, lanes,
        4]. Last, lengths [batch] if masked. Makes y[steps, directions, batch, panels, lanes], h,
        and c for an LSTM.
        """
        state = (self.directions, self.batch, self.panels, self.lanes)
        shapes = [(self.steps, *state), *([state] * (self.results - 1))]
        build = lambda ins, outs: _Program(self, ins, outs).build()  # noqa: E731
        dtypes = ["float32"] * len(shapes)
        # TVM's own buffers begin at an offset, which a program's text could not show.
        ins = [tirx.decl_buffer(one.shape, one.dtype, layout=None) for one in given]
        outs = [tirx.decl_buffer(shape, "float32", layout=None) for shape in shapes]
        name = self.cell.lower()
        return tvm.te.extern(shapes, given, build, name, dtypes, in_buffers=ins, out_buffers=outs)


class _Own:
    """A tensor with an axis for directions, indexed at the current direction."""

    def __init__(self, program: _Program, tensor: Any) -> None:
        self._program, self._tensor = program, tensor

    def __getitem__(self, indices: tuple[Any, ...]) -> Any:
        place = self._program.d, *indices
        return self._tensor[place]

    def __setitem__(self, indices: tuple[Any, ...], value: Any) -> None:
        place = self._program.d, *indices
        self._tensor[place] = value


class _Program:
    """The statements of a layer, written once for all cells."""

    def __init__(self, layer: Layer, ins: Sequence[Any], outs: Sequence[Any]) -> None:
        self.layer, self.T = layer, tvm.script.ir_builder.tirx
        self.x, *given = map(self.T.buffer_proxy, ins)
        self.lengths: Any = given.pop() if layer.masked else None
        own = [_Own(self, buffer) for buffer in given]
        self.weights = [own.pop(0) for _ in layer.passes]
        self.totals: Any = own.pop() if layer.by_fours else None
        self.scales: Any = own.pop() if layer.rounded else None
        self.h0, *self.rest = own
        self.y, *states = map(self.T.buffer_proxy, outs)
        self.h, *others = [_Own(self, buffer) for buffer in states]
        self.c: Any = others[0] if others else None
        self.rounded: RoundedState | None = None

    def build(self) -> Any:
        """The layer's whole statement."""
        T, layer = self.T, self.layer  # noqa: N806
        with tvm.script.ir_builder.IRBuilder() as builder:
            loop = T.parallel if layer.directions > 1 else T.serial
            with loop(0, layer.directions) as d, T.seq_scope():
                self.d = d
                self._copy(self.h0, self.h)
                if self.c is not None:
                    self._copy(self.rest[0], self.c)
                self.new = self._state()
                self.after: Any = None if self.c is None else self._state()
                state = (layer.batch, layer.panels, layer.lanes)
                if layer.rounded:
                    self.rounded = RoundedState(T, state, layer.hidden, in_bytes=layer.by_fours)
                if layer.masked:
                    self._steps_of_lengths()
                else:
                    with T.serial(0, layer.steps) as t:
                        self._advance(t)
            return builder.get()

    def _steps_of_lengths(self) -> None:
        """As many steps as the longest sequence has; the steps behind only write zeros."""
        T, layer = self.T, self.layer  # noqa: N806
        longest = T.buffer_proxy(T.alloc_buffer((1,), self.lengths.dtype, layout=None))
        longest[0] = tirx.const(0, self.lengths.dtype)
        with T.serial(0, layer.batch) as b:
            longest[0] = tirx.max(longest[0], self.lengths[b])
        with T.serial(0, layer.steps) as t, T.If(t < longest[0]):
            with T.Then():
                self._advance(t)
            with T.Else(), self._units() as (b, p, lane):
                self.y[t, self.d, b, p, lane] = number(0)

    def _advance(self, t: Any) -> None:
        """A step, and the state that it leaves to the next."""
        T, layer, d = self.T, self.layer, self.d  # noqa: N806
        if self.rounded:
            self.rounded.round(self.h)
        with T.sblock("step"):
            self.d = T.axis.opaque(layer.directions, d)
            self.t = T.axis.opaque(layer.steps, t)
            self._step()
        self.d, self.t = d, t
        self._carry()

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
            self._pass(0, self.rounded.steps if self.rounded else self.h, cell)

    def _carry(self) -> None:
        """Make the results of a step the state, and a part of the output."""
        with self._units() as (b, p, lane):
            new, at = self.new[b, p, lane], self._time(b)
            self.y[at, self.d, b, p, lane] = self._if_valid(b, new, number(0))
            self.h[b, p, lane] = self._if_valid(b, new, self.h[b, p, lane])
            if self.c is not None:
                after = self.after[b, p, lane]
                self.c[b, p, lane] = self._if_valid(b, after, self.c[b, p, lane])

    def _scratch(self, *gates: int, dtype: str = "float32") -> Any:
        """A tensor within a step, with an entry for each of some gates of each unit."""
        layer = self.layer
        shape = (layer.batch, layer.panels, *gates, layer.lanes)
        return self.T.buffer_proxy(self.T.sblock_alloc_buffer(shape, dtype, layout=None))

    def _pass(self, at: int, state: Any, cell: Callable[..., None]) -> None:
        """Sums of some gates of all units, and then the cell's functions of them."""
        T, layer = self.T, self.layer  # noqa: N806
        weights, gates = self.weights[at], layer.passes[at]
        outer, lanes = (layer.batch, layer.panels), layer.lanes
        deep = [-(-layer.hidden // STEPS), STEPS] if layer.by_fours else [layer.hidden]
        kind = "int32" if layer.by_fours else "float32"
        sums = self._scratch(len(gates), dtype=kind)
        with T.grid(*outer, len(gates), lanes, *deep) as loops, T.sblock(f"product{at}"):
            b, p, g, lane, k, *step = T.axis.remap("SSSS" + "R" * len(deep), loops)
            with T.init():
                sums[b, p, g, lane] = tirx.const(0, kind)
            left = state[b, k * STEPS + step[0]] if step else state[b, k // lanes, k % lanes]
            at_step = (p, k, g, lane, *step)
            product = left.astype(kind) * weights[at_step].astype(kind)
            sums[b, p, g, lane] = sums[b, p, g, lane] + product
        with T.grid(*outer, lanes) as loops, T.sblock(f"cell{at}"):
            b, p, lane = T.axis.remap("SSS", loops)
            cell(b, p, lane, [self._scaled(sums, b, p, gate, lane) for gate in range(len(gates))])

    def _scaled(self, sums: Any, b: Any, p: Any, gate: int, lane: Any) -> Any:
        """A sum of products as float32."""
        total = sums[b, p, gate, lane]
        if self.rounded is None:
            return total
        if self.totals is not None:
            zero = tirx.Cast("int32", self.rounded.zero)
            total = tirx.Cast("float32", total - zero * self.totals[p, gate, lane])
        return total * (self.rounded.scale * self.scales[p, gate, lane])

    def _input(self, b: Any, p: Any, gate: int, lane: Any) -> Any:
        """The inputs' part of a gate's sum."""
        return self.x[self._time(b), b, self.d, p, gate, lane]

    def _lstm(self, b: Any, p: Any, lane: Any, sums: list[Any]) -> None:
        f, g = self._clipped(0), self._clipped(1)
        h = self._function(2)  # ONNX Runtime clips only the gates
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
        f, g = self._clipped(0), self._clipped(1)
        update, reset, inputs = (self._input(b, p, gate, lane) for gate in range(3))
        again = f(sums[1] + reset) * (sums[2] + self.rest[0][p, lane])
        self._mix(b, p, lane, f(sums[0] + update), g(inputs + again))

    def _update_and_reset(self, b: Any, p: Any, lane: Any, sums: list[Any]) -> None:
        f = self._clipped(0)
        self.update[b, p, lane] = f(sums[0] + self._input(b, p, 0, lane))
        self.reset[b, p, lane] = f(sums[1] + self._input(b, p, 1, lane)) * self.h[b, p, lane]

    def _candidate(self, b: Any, p: Any, lane: Any, sums: list[Any]) -> None:
        g = self._clipped(1)
        candidate = g(sums[0] + self._input(b, p, 2, lane))
        self._mix(b, p, lane, self.update[b, p, lane], candidate)

    def _mix(self, b: Any, p: Any, lane: Any, update: Any, candidate: Any) -> None:
        self.new[b, p, lane] = (number(1) - update) * candidate + update * self.h[b, p, lane]

    def _rnn(self, b: Any, p: Any, lane: Any, sums: list[Any]) -> None:
        function = self._clipped(0)
        self.new[b, p, lane] = function(sums[0] + self._input(b, p, 0, lane))

    def _function(self, at: int) -> Function:
        """An activation of the current direction."""
        first, *others = (functions[at] for functions in self.layer.functions)
        if all(one is first for one in others):
            return first
        (second,) = others
        return lambda x: tirx.Select(self.d == 0, first(x), second(x))

    def _clipped(self, at: int) -> Function:
        function, bound = self._function(at), self.layer.clip
        if bound is None:
            return function
        low, high = (number(sign * bound) for sign in (-1, 1))
        return lambda x: function(tirx.max(low, tirx.min(high, x)))

    def _time(self, b: Any) -> Any:
        """The time that a sequence is at in this step: reversed ones count from their own end."""
        reverses = self.layer.reverses
        if not any(reverses):
            return self.t
        back = self.layer.steps - 1 - self.t
        if self.lengths is not None:
            back = tirx.Select(self._valid(b), self.lengths[b] - 1 - self.t, self.t)
        return back if all(reverses) else tirx.Select(self.d == 1, back, self.t)

    def _valid(self, b: Any) -> Any:
        return self.t < self.lengths[b]

    def _if_valid(self, b: Any, value: Any, otherwise: Any) -> Any:
        return value if self.lengths is None else tirx.Select(self._valid(b), value, otherwise)
