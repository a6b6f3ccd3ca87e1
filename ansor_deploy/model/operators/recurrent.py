"""LSTM, GRU and RNN: one matrix multiplication for all steps' inputs, then the recurrence.

    x[T * B, D * P * G * L] = X[T * B, I] * W'[I, D * P * G * L] + b'      a task like any other
    y[T, D, B, P, L], h, c = recurrence(x, R'[D, P, H, G, L], h0, c0)      recurrence.py, another

W' and R' hold the weights of D directions and G gates in P panels of L units; the last panel is
padded with zeros. All is computed in float32.

Our own LSTM operator gets x as an input, and integers as R with their scales
(`recurrent_bytes.py`). In a range our own operators get the number of steps that count, so that no
more of x is made.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..._lazy_tvm import relax
from ...marks.dot import STEPS, current_has_dot
from ..graph.graph import OWN
from .activations import ACTIVATIONS, TAKE_ALPHA, TAKE_BETA
from .converting import Call
from .counted_places import READS_BELOW
from .indices import in_range
from .operator import Limit, Operator, Use, choice
from .recurrence import Layer
from .tensor import Tensor, zeros

# The most units of a panel: enough that other sums are computed while one waits for its last
# product. Multiples of `_VECTOR`, which is whole vectors on every processor.
_WIDEST = {"LSTM": 16, "GRU": 32, "RNN": 64}
_VECTOR = 16
_DEFAULT = {"LSTM": "sigmoid tanh tanh", "GRU": "sigmoid tanh", "RNN": "tanh"}
# Indices of inputs.
LENGTHS = 4
INITIAL_H = 5
INITIAL_C = 6
SCALES = 8  # the index of the recurrent weights' scales, an input of our LSTM
COUNT = 9  # the index of how many steps count, an input of our layers in a range


def _unknown_activations(use: Use) -> bool:
    names = use.attribute("activations") or []
    return any(name.decode().lower() not in ACTIVATIONS for name in names)


def recurrent(call: Call) -> Any:
    """A layer, with its outputs in the node's layout."""
    layer = _layer(call)
    made = [_unpadded(call, layer, one) for one in _computed(call, layer)]
    if call.attribute("layout", 0):
        orders = ((2, 0, 1, 3), (1, 0, 2), (1, 0, 2))
        made = [one.permuted(*order) for one, order in zip(made, orders, strict=False)]
    kind = call.dtype(0)
    return relax.Tuple([call.emit(relax.op.astype(one.expression, kind)) for one in made])


def _computed(call: Call, layer: Layer) -> list[Any]:
    """The outputs of a layer: y[T, D, B, P, L], h[D, B, P, L], and c for an LSTM."""
    given = _Inputs(call, layer)
    weights = [given.recurrent_weights(gates) for gates in layer.passes]
    inputs = [given.steps(), *weights, given.state(INITIAL_H)]
    if layer.cell == "LSTM":
        inputs += [given.state(INITIAL_C), given.peepholes()]
    if layer.cell == "GRU" and layer.linear_before_reset:
        inputs.append(given.reset_bias())
    if layer.rounded:
        inputs.append(given.scales())
    if layer.by_fours:
        inputs.append(given.totals())
    expressions = [one.expression for one in inputs]
    if layer.masked:
        longest, lengths = [layer.steps + 1], call.inputs[LENGTHS]
        of = "a sequence length"
        expressions.append(in_range(call, lengths, longest, negative=False, of=of))
    words: dict[str, Any] = {"primfunc_name_hint": layer.cell.lower()}
    compute = layer.compute
    if call.input(COUNT) is not None:
        words["primfunc_attrs"] = {READS_BELOW: [[0, 0, len(expressions)]]}
        expressions.append(call.inputs[COUNT])
        compute = _without_last(layer)
    made = call.bb.emit_te(compute, *expressions, **words)
    return [call.emit(made[n]) for n in range(layer.results)]


def _without_last(layer: Layer) -> Callable[..., Any]:
    """The layer, which takes another input that it does not read."""
    return lambda *given: layer.compute(*given[:-1])


def _layer(call: Call) -> Layer:
    cell = call.operator
    direction = call.attribute("direction", "forward")
    rounded = call.input(SCALES) is not None
    reverses = {"forward": (False,), "reverse": (True,)}.get(direction, (False, True))
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
        functions=_functions(call, len(reverses)),
        reverses=reverses,
        masked=call.input(LENGTHS) is not None,
        rounded=rounded,
        by_fours=rounded and call.dtype(2) == "int8" and current_has_dot(),
        clip=call.attribute("clip"),
        input_forget=bool(call.attribute("input_forget", 0)),
        linear_before_reset=bool(call.attribute("linear_before_reset", 0)),
    )


def _lanes(cell: str, hidden: int) -> int:
    """The units of a panel: as many as fit `_WIDEST`, the same for all panels."""
    panels = math.ceil(hidden / _WIDEST[cell])
    return _VECTOR * math.ceil(hidden / panels / _VECTOR)


def _functions(call: Call, directions: int) -> tuple[tuple[Any, ...], ...]:
    """The activations of each direction; those that take an alpha or beta get it from the lists."""
    default = _DEFAULT[call.operator].split()
    given = [name.decode() for name in call.attributes.get("activations", ())]
    names = [name.lower() for name in given or default * directions]
    alphas, betas = (list(call.attributes.get(f"activation_{k}", ())) for k in ("alpha", "beta"))
    made = []
    for name in names:
        alpha, beta, _ = ACTIVATIONS[name]
        alpha = alphas.pop(0) if name in TAKE_ALPHA and alphas else alpha
        beta = betas.pop(0) if name in TAKE_BETA and betas else beta
        made.append(_applied(name, alpha, beta))
    count = len(default)
    return tuple(tuple(made[at * count : (at + 1) * count]) for at in range(directions))


@cache
def _applied(name: str, alpha: float, beta: float) -> Any:
    """An activation as a function of one number; the same object for equal arguments."""
    *_, function = ACTIVATIONS[name]
    return lambda x: function(x, alpha, beta)


class _Inputs:
    """The inputs of a layer, in panels of units."""

    def __init__(self, call: Call, layer: Layer) -> None:
        self.call, self.layer = call, layer
        self.units = layer.panels, layer.lanes

    def steps(self) -> Tensor:
        """All steps' inputs times their weights, plus the biases: [T, B, D, P, G, L]."""
        layer = self.layer
        if layer.rounded:
            return self._made_steps()
        units = layer.directions, layer.panels, layer.gates, layer.lanes
        data = Tensor.of(self.call, 0)
        if self.call.attribute("layout", 0):
            data = data.permuted(1, 0, 2)
        size, columns = data.shape[2], math.prod(units)
        rows = data.reshaped(layer.steps * layer.batch, size)
        weight = self._blocks(1, layer.gates).permuted(4, 0, 2, 1, 3).reshaped(size, columns)
        product = relax.op.matmul(rows.expression, weight.expression)
        if self.call.input(3) is not None:
            bias = self._bias().permuted(1, 2, 0, 3).reshaped(columns)
            product = relax.op.add(self.call.emit(product), bias.expression)
        made = Tensor(self.call, self.call.emit(product))
        return made.reshaped(layer.steps, layer.batch, *units)

    def _made_steps(self) -> Tensor:
        """The products that the node is given as [T, B, D * G * H], in panels."""
        layer = self.layer
        outer = layer.steps * layer.batch * layer.directions * layer.gates
        split = Tensor.of(self.call, 0).reshaped(outer, layer.hidden)
        padded = split.padded(1, math.prod(self.units) - layer.hidden)
        lead = layer.steps, layer.batch, layer.directions
        return padded.reshaped(*lead, layer.gates, *self.units).permuted(0, 1, 2, 4, 3, 5)

    def recurrent_weights(self, gates: range) -> Tensor:
        """State weights for some gates G: [D, P, H, G, L]; integers keep their stored type."""
        by_gates = self._blocks(2, self.layer.gates).permuted(1, 0, 2, 4, 3)
        made = by_gates.part(gates.start, gates.stop).permuted(1, 2, 3, 0, 4)
        if not self.layer.rounded:
            return made
        whole = made.value.astype(self.call.dtype(2))
        return Tensor(self.call, _fours(whole) if self.layer.by_fours else whole)

    def scales(self) -> Tensor:
        """The scale of the integers in each recurrent weight: [D, P, G, L]."""
        return self._units(SCALES, self.layer.gates).permuted(0, 2, 1, 3)

    def totals(self) -> Tensor:
        """The sums of integer recurrent weights over the units that they multiply: [D, P, G, L]."""
        by_gates = self._blocks(2, self.layer.gates).permuted(0, 2, 1, 3, 4)
        return Tensor(self.call, by_gates.value.astype(np.int32).sum(-1, dtype=np.int32))

    def state(self, index: int) -> Tensor:
        """An initial state, zero if none is given: [D, B, P, L]."""
        return self._units(index, self.layer.batch)

    def peepholes(self) -> Tensor:
        """Weights of the cell state in gates i, o and f: [D, 3, P, L]."""
        return self._units(7, 3)

    def reset_bias(self) -> Tensor:
        """The bias of a GRU's state product, added before the reset: [D, P, L]."""
        by_gates = self._units(3, 6).permuted(1, 0, 2, 3)
        return by_gates.part(5, 6).reshaped(self.layer.directions, *self.units)

    def _bias(self) -> Tensor:
        """The sum of both biases of each gate, without `reset_bias`: [G, D, P, L]."""
        both, gates = self._units(3, 2 * self.layer.gates).permuted(1, 0, 2, 3), self.layer.gates
        added = gates
        if self.layer.cell == "GRU" and self.layer.linear_before_reset:
            added = 2
        total = both.part(0, added).plus(both.part(gates, gates + added))
        return total if added == gates else total.followed_by(both.part(added, gates))

    def _units(self, index: int, count: int) -> Tensor:
        """An optional input that has one number for each unit: [D, count, P, L]."""
        shape = self.layer.directions, count, *self.units
        if self.call.input(index) is None:
            return zeros(self.call, *shape)
        return self._blocks(index, count).reshaped(*shape)

    def _blocks(self, index: int, count: int) -> Tensor:
        """An input of all directions with its units padded: [D, count, P, L, the rest]."""
        given = Tensor.of(self.call, index)
        if index in (INITIAL_H, INITIAL_C) and self.call.attribute("layout", 0):
            given = given.permuted(1, 0, 2)
        directions, hidden = self.layer.directions, self.layer.hidden
        rest = math.prod(given.shape) // (directions * count * hidden)
        split = given.reshaped(directions * count, hidden, rest)
        padded = split.padded(1, math.prod(self.units) - hidden)
        return padded.reshaped(directions, count, *self.units, rest)


def _fours(weights: np.ndarray) -> np.ndarray:
    """Weights [D, P, H, G, L] as [D, P, H / 4, G, L, 4], the last four filled up with zeros."""
    directions, panels, hidden, *columns = weights.shape
    padding = [(0, -hidden % STEPS if at == 2 else 0) for at in range(weights.ndim)]
    fours = np.pad(weights, padding).reshape(directions, panels, -1, STEPS, *columns)
    return np.ascontiguousarray(np.moveaxis(fours, 3, -1))


def _unpadded(call: Call, layer: Layer, made: Any) -> Tensor:
    """An output [..., P, L] with only the layer's own units: [..., H]."""
    *outer, panels, lanes = Tensor(call, made).shape
    flat = Tensor(call, made).reshaped(*outer, panels * lanes)
    if layer.hidden == panels * lanes:
        return flat
    kept = relax.op.strided_slice(flat.value, [len(outer)], [0], [layer.hidden])
    return Tensor(call, call.emit(kept))


LIMITS = (
    choice("direction", "forward", "forward", "reverse", "bidirectional"),
    Limit(f"`activations` are of {', '.join(sorted(ACTIVATIONS))}", _unknown_activations),
)
_TYPES = ("float16", "float32", "int32")
OPERATORS = (
    *(
        Operator(name, since=7, types=_TYPES, limits=LIMITS, convert=recurrent)
        for name in ("LSTM", "GRU", "RNN")
    ),
    *(
        Operator(name, OWN, constant=(2, SCALES), convert=recurrent)
        for name in ("LSTM", "GRU", "RNN")
    ),
)
