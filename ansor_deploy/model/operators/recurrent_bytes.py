"""DynamicQuantizeLSTM: byte weights, and inputs and states that are rounded to bytes in a run.

    q, s = DynamicQuantizeLinear(X)
    x[T, B, D * 4 * H] = (q * W) * s * W_scale + b
    y, h, c = LSTM(x, R, h0, c0, R_scale)

The inputs of all steps are rounded at once, so that x is a product of integers like any other. The
state is rounded at each step, by our own LSTM operator (`recurrent.py`).
"""

from __future__ import annotations

import numpy as np
from onnx import helper

from ..graph.graph import OWN
from .emitter import Emitter
from .operator import Limit, contrib
from .quantization import FLOAT, quantised_at_run
from .recurrent import LENGTHS, LIMITS

_KEPT = (
    "activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size",
    "input_forget",
)  # fmt: skip
# Indices of inputs: weights of the inputs, their scales and zero points.
_W = (1, 8, 9)
# The same for the recurrent weights.
_R = (2, 10, 11)


def dynamic_quantize_lstm(emit: Emitter) -> list[str]:
    """Emit the product of all steps' inputs, and our LSTM of it."""
    weights, scales, zeros = _weights(emit, *_R)
    whole = _narrow(weights.astype(np.int16) - zeros[:, None])
    turned = emit.constant(whole.swapaxes(1, 2), helper.np_dtype_to_tensor_dtype(whole.dtype))
    states = [emit.input(at) for at in range(4, 8)]
    given = [_inputs(emit), "", turned, "", *states, emit.constant(scales)]
    steps, batch, _ = emit.shape(emit.input(0))
    state = len(weights), batch, weights.shape[1]
    return _lstm(emit, given, [(steps, *state), state, state])


def _lstm(emit: Emitter, given: list[str], shapes: list[tuple[int, ...]]) -> list[str]:
    made = [emit.graph.fresh(f"{emit.node.output[0]}_LSTM") for _ in shapes]
    kept = {name: emit.attribute(name) for name in _KEPT}
    kept = {name: value for name, value in kept.items() if value is not None}
    emit.nodes.append(helper.make_node("LSTM", given, made, made[0], domain=OWN, **kept))
    for name, shape in zip(made, shapes, strict=True):
        emit.graph.declare(name, FLOAT, shape)
    return made


def _inputs(emit: Emitter) -> str:
    """All steps' inputs times their weights, plus both biases: [T, B, D * 4 * H]."""
    steps, scale, zero = quantised_at_run(emit, emit.input(0))
    weights, scales, zeros = _weights(emit, *_W)
    kind = helper.np_dtype_to_tensor_dtype(weights.dtype)
    columns = emit.constant(np.concatenate(list(weights), axis=1), kind)
    total = emit("MatMulInteger", steps, columns, zero, emit.constant(zeros.reshape(-1), kind))
    each = emit("Mul", scale, emit.constant(scales.reshape(-1)))
    made = emit("Mul", emit.cast(total, FLOAT), each)
    if not emit.input(3):
        return made
    both = np.split(emit.constant_input(3), 2, axis=1)
    return emit("Add", made, emit.constant(np.add(*both).reshape(-1)))


def _weights(emit: Emitter, *indices: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights [D, rows, columns], and the scale and zero point of each column [D, columns]."""
    weights, *ends = (emit.constant_input(at) for at in indices)
    columns = weights.shape[0], weights.shape[2]
    scales, zeros = (np.broadcast_to(one.reshape(len(one), -1), columns) for one in ends)
    return weights, scales, zeros


def _narrow(whole: np.ndarray) -> np.ndarray:
    """Integers as bytes if they fit."""
    ends = np.iinfo(np.int8)
    fits = ends.min <= whole.min(initial=0) and whole.max(initial=0) <= ends.max
    return whole.astype(np.int8) if fits else whole


# With lengths, ONNX Runtime rounds all rows that have not ended by one range, which ours does not.
_ALL_ROWS = Limit("`sequence_lens` is left out", lambda use: use.input(LENGTHS))
OPERATORS = (
    contrib("DynamicQuantizeLSTM", limits=(*LIMITS, _ALL_ROWS), expand=dynamic_quantize_lstm),
)
