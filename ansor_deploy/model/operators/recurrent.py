"""LSTM, GRU and RNN: one matrix multiplication for all steps' inputs, then the recurrence.

    x[T * B, P * G * L] = X[T * B, I] * W'[I, P * G * L] + b'       a task like any other
    y[T, B, P, L], h, c = recurrence(x, R'[P, H, G, L], h0, c0)     recurrence.py, another

W' and R' hold the weights of G gates in P panels of L units, the last one padded by zeros. A
bidirectional layer is two, whose outputs are concatenated. All is computed in float32.
"""

import math
from functools import partial
from typing import Any

from ..._lazy_tvm import relax
from .activations import ACTIVATIONS, TAKE_ALPHA, TAKE_BETA
from .converting import Call
from .indices import in_range
from .operator import Limit, Operator, Use, choice
from .recurrence import Layer
from .tensor import Tensor, zeros

# Units of a panel at most: as many as have enough sums to hide behind each other that each waits
# for its own last product. A multiple of `_VECTOR`, whole vectors on every processor.
_WIDEST = {"LSTM": 16, "GRU": 32, "RNN": 64}
_VECTOR = 16
_DEFAULT = {"LSTM": "sigmoid tanh tanh", "GRU": "sigmoid tanh", "RNN": "tanh"}
LENGTHS, INITIAL_H, INITIAL_C = 4, 5, 6  # indices of inputs


def _unknown_activations(use: Use) -> bool:
    names = use.attribute("activations") or []
    return any(name.decode().lower() not in ACTIVATIONS for name in names)


def recurrent(call: Call) -> Any:
    """All directions of a layer, and its outputs in the node's layout."""
    direction = call.attribute("direction", "forward")
    reverses = {"forward": (False,), "reverse": (True,)}.get(direction, (False, True))
    made = [_direction(call, at, reverse=reverse) for at, reverse in enumerate(reverses)]
    joined = [_joined(axis, parts) for axis, *parts in zip((1, 0, 0), *made, strict=False)]
    if call.attribute("layout", 0):
        orders = ((2, 0, 1, 3), (1, 0, 2), (1, 0, 2))
        joined = [one.permuted(*order) for one, order in zip(joined, orders, strict=False)]
    kind = call.dtype(0)
    return relax.Tuple([call.emit(relax.op.astype(one.expression, kind)) for one in joined])


def _joined(axis: int, parts: list[Tensor]) -> Tensor:
    if len(parts) == 1:
        return parts[0]
    call = parts[0].call
    return Tensor(call, call.emit(relax.op.concat([part.expression for part in parts], axis)))


def _direction(call: Call, at: int, *, reverse: bool) -> list[Tensor]:
    """The outputs of one direction: y[T, 1, B, H], h[1, B, H], and c of an LSTM."""
    layer = _layer(call, at, reverse=reverse)
    given = _Inputs(call, at, layer)
    weights = [given.recurrent_weights(gates) for gates in layer.passes]
    inputs = [given.steps(), *weights, given.state(INITIAL_H)]
    if layer.cell == "LSTM":
        inputs += [given.state(INITIAL_C), given.peepholes()]
    if layer.cell == "GRU" and layer.linear_before_reset:
        inputs.append(given.reset_bias())
    expressions = [one.expression for one in inputs]
    if layer.masked:
        longest = [layer.steps + 1]
        given = call.inputs[LENGTHS]
        expressions.append(in_range(call, given, longest, negative=False, of="a sequence length"))
    name = layer.cell.lower()
    made = call.bb.emit_te(layer.compute, *expressions, primfunc_name_hint=name)
    y, *states = (_unpadded(call, layer, call.emit(made[n])) for n in range(layer.results))
    steps, *rest = y.shape
    return [y.reshaped(steps, 1, *rest), *(one.reshaped(1, *rest) for one in states)]


def _layer(call: Call, at: int, *, reverse: bool) -> Layer:
    cell = call.operator
    steps, batch, _ = call.shape(0)
    hidden = call.shape(2)[2]
    if call.attribute("layout", 0):
        steps, batch = batch, steps
    return Layer(
        cell=cell,
        steps=steps,
        batch=batch,
        hidden=hidden,
        lanes=_lanes(cell, hidden),
        functions=_functions(call, at),
        reverse=reverse,
        masked=call.input(LENGTHS) is not None,
        clip=call.attribute("clip"),
        input_forget=bool(call.attribute("input_forget", 0)),
        linear_before_reset=bool(call.attribute("linear_before_reset", 0)),
    )


def _lanes(cell: str, hidden: int) -> int:
    """Units of each of the panels, which are as wide as may be and all alike."""
    panels = math.ceil(hidden / _WIDEST[cell])
    return _VECTOR * math.ceil(hidden / panels / _VECTOR)


def _functions(call: Call, at: int) -> tuple[Any, ...]:
    """The activations of a direction; alphas and betas are given to those that take any."""
    default = _DEFAULT[call.operator].split()
    given = [name.decode() for name in call.attributes.get("activations", ())]
    names = [name.lower() for name in given or default * 2]
    alphas, betas = (list(call.attributes.get(f"activation_{k}", ())) for k in ("alpha", "beta"))
    made = []
    for name in names:
        alpha, beta, function = ACTIVATIONS[name]
        alpha = alphas.pop(0) if name in TAKE_ALPHA and alphas else alpha
        beta = betas.pop(0) if name in TAKE_BETA and betas else beta
        made.append(partial(_applied, function, alpha, beta))
    return tuple(made[at * len(default) : (at + 1) * len(default)])


def _applied(function: Any, alpha: float, beta: float, x: Any) -> Any:
    return function(x, alpha, beta)


class _Inputs:
    """What one direction of a layer reads, in panels of units."""

    def __init__(self, call: Call, at: int, layer: Layer) -> None:
        self.call, self.at, self.layer = call, at, layer
        self.units = layer.panels, layer.lanes

    def steps(self) -> Tensor:
        """All steps' inputs times their weights, with the biases: [T, B, P, G, L]."""
        layer, gates = self.layer, self.layer.gates
        data = Tensor.of(self.call, 0)
        if self.call.attribute("layout", 0):
            data = data.permuted(1, 0, 2)
        size, columns = data.shape[2], gates * math.prod(self.units)
        rows = data.reshaped(layer.steps * layer.batch, size)
        weight = self._blocks(1, gates).permuted(3, 1, 0, 2).reshaped(size, columns)
        product = relax.op.matmul(rows.expression, weight.expression)
        if self.call.input(3) is not None:
            bias = self._bias().permuted(1, 0, 2, 3).reshaped(columns)
            product = relax.op.add(self.call.emit(product), bias.expression)
        made = Tensor(self.call, self.call.emit(product))
        return made.reshaped(layer.steps, layer.batch, layer.panels, gates, layer.lanes)

    def recurrent_weights(self, gates: range) -> Tensor:
        """Weights of the state for some gates G: [P, H, G, L]."""
        all_gates = self._blocks(2, self.layer.gates)
        return all_gates.part(gates.start, gates.stop).permuted(1, 3, 0, 2)

    def state(self, index: int) -> Tensor:
        """A state to begin with, zero if none is given: [B, P, L]."""
        return self._units(index, self.layer.batch)

    def peepholes(self) -> Tensor:
        """Weights of the cell state in gates i, o and f: [3, P, L]."""
        return self._units(7, 3)

    def reset_bias(self) -> Tensor:
        """What is added to a GRU's state product before it is reset: [P, L]."""
        return self._units(3, 6).part(5, 6).reshaped(*self.units)

    def _bias(self) -> Tensor:
        """Both biases of each gate, but for the one that `reset_bias` is: [G, P, L, 1]."""
        both, gates = self._blocks(3, 2 * self.layer.gates), self.layer.gates
        added = gates
        if self.layer.cell == "GRU" and self.layer.linear_before_reset:
            added = 2
        total = both.part(0, added).plus(both.part(gates, gates + added))
        return total if added == gates else total.followed_by(both.part(added, gates))

    def _units(self, index: int, count: int) -> Tensor:
        """An optional input that has one number a unit: [count, P, L]."""
        if self.call.input(index) is None:
            return zeros(self.call, count, *self.units)
        return self._blocks(index, count).reshaped(count, *self.units)

    def _blocks(self, index: int, count: int) -> Tensor:
        """An input of this direction: [count, P, L, the rest], its units padded."""
        given = Tensor.of(self.call, index)
        if index in (INITIAL_H, INITIAL_C) and self.call.attribute("layout", 0):
            given = given.permuted(1, 0, 2)
        hidden = self.layer.hidden
        rest = math.prod(given.shape[1:]) // (count * hidden)
        split = given.part(self.at, self.at + 1).reshaped(count, hidden, rest)
        padded = split.padded(1, math.prod(self.units) - hidden)
        return padded.reshaped(count, *self.units, rest)


def _unpadded(call: Call, layer: Layer, made: Any) -> Tensor:
    """An output [..., P, L] with the layer's own units: [..., H]."""
    *outer, panels, lanes = Tensor(call, made).shape
    flat = Tensor(call, made).reshaped(*outer, panels * lanes)
    if layer.hidden == panels * lanes:
        return flat
    kept = relax.op.strided_slice(flat.value, [len(outer)], [0], [layer.hidden])
    return Tensor(call, call.emit(kept))


_LIMITS = (
    choice("direction", "forward", "forward", "reverse", "bidirectional"),
    Limit(f"`activations` are of {', '.join(sorted(ACTIVATIONS))}", _unknown_activations),
)
_TYPES = ("float16", "float32", "int32")
OPERATORS = tuple(
    Operator(name, since=7, types=_TYPES, limits=_LIMITS, convert=recurrent)
    for name in ("LSTM", "GRU", "RNN")
)
