"""An operator of our own, in no file: rows times block-quantised weights, which stay quantised.

    y = BlockProduct(x, steps, scales)      y[.., c] = sum over k of
                                            x[.., k] * (float32(steps[k, c]) * scales[k / size, c])

Steps are a byte each, or four bits, eight a word (`four_bits.py`); the latter become bytes where
many rows are multiplied. So no weight becomes float32 on its way to the library, which would take
four or eight times the memory, several times over. For a GPU the weights do become float32, since
its programs read that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto

from ..._lazy_tvm import relax, tirx, tvm
from ...errors import ModelError
from ...marks.dot import current_has_dot, current_widens
from ..graph.graph import OWN, Shape
from . import rounded_products
from .converting import Call
from .emitter import Emitter
from .four_bits import EACH, FEW, step_of, steps_of, words_of
from .operator import Operator
from .rounded_products import WITH_EPILOGUE

NAME = "BlockProduct"

_KINDS = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int32": TensorProto.INT32}

Load = Callable[[Any, Sequence[Any]], Any]


@dataclass(frozen=True, eq=False)
class Blocks:
    """A matrix of weights in blocks.

    steps: (K, N), signed bytes relative to their zero point, or unsigned ones. scales: (blocks, N),
    for each block of `size` steps. zeros: zero points of unsigned bytes, where rows may be rounded.
    """

    steps: np.ndarray
    scales: np.ndarray
    size: int
    zeros: np.ndarray | None = None


def block_product(emit: Emitter, rows: str, lead: Shape | None, given: Blocks) -> str:
    """Multiply float32 rows by weights in blocks.

    lead: the shape of the rows without K; None if it is not known yet.
    """
    words = words_of(given.steps)
    steps = given.steps if words is None else words
    inputs = [rows, emit.constant(steps, _KINDS[str(steps.dtype)]), emit.constant(given.scales)]
    if given.zeros is not None:
        inputs.append(emit.constant(given.zeros, TensorProto.UINT8))
    shape = None if lead is None else (*lead, given.steps.shape[1])
    return emit.own(NAME, inputs, TensorProto.FLOAT, shape, size=given.size)


def weight(
    load: Load,
    stored: Any,
    scales: Any,
    at: Sequence[Any],
    axis: int,
    size: int,
    zeros: Any = None,
) -> Any:
    """A weight as float32. load: reads an element of a tensor. axis: that of the blocks.

    zeros: the step of each block that stands for zero; None if that is 0.
    """
    in_words = str(stored.dtype) == "int32"
    word, block = ([i // each if k == axis else i for k, i in enumerate(at)]
                   for each in (EACH if in_words else 1, size))  # fmt: skip
    found = load(stored, word)
    step = step_of(found, at[axis] % EACH) if in_words else tirx.Cast("float32", found)
    step = step if zeros is None else step - load(zeros, block)
    return step * load(scales, block)


def converted(call: Call) -> Any:
    """A function that makes weights float32 as it loads them, or one that rounds rows to bytes."""
    _check(call)
    on_gpu, rounded = "gpu" in tvm.target.Target.current().keys, call.input(3) is not None
    in_words = call.dtype(1) == "int32"
    if rounded and (current_has_dot() or (in_words and current_widens())):
        return rounded_products.product(call, _value(call, 1), _value(call, 3))
    size, steps, scales = call.attribute("size"), _signed(call), call.inputs[2]
    rows = rounded_products.floats(call, size) if rounded and not on_gpu else call.inputs[0]
    if on_gpu or steps.dtype != np.int8:
        return relax.op.matmul(rows, _as_float32(steps, _value(call, 2), size))
    few = math.prod(call.shape(0)[:-1]) <= FEW
    words = words_of(steps) if few else None
    given = rows, relax.const(steps if words is None else words), scales, size
    attributes = {"op_pattern": WITH_EPILOGUE}
    return call.emit(call.bb.call_te(_product, *given, primfunc_name_hint="matmul",
                                     primfunc_attrs=attributes))  # fmt: skip


def _check(call: Call) -> None:
    """ModelError if the shapes do not fit; the graphs that we write never have such."""
    size, depth = call.attribute("size"), call.shape(0)[-1]
    each = EACH if call.dtype(1) == "int32" else 1
    columns, blocks = call.shape(1)[-1], -(-depth // size)
    shapes = [call.shape(at) for at in range(2, len(call.inputs))]
    if call.shape(1) != (depth / each, columns) or any(s != (blocks, columns) for s in shapes):
        raise ModelError("the weights of a product of blocks do not fit", "export the model again")


def _value(call: Call, index: int) -> np.ndarray:
    found = call.value(index)
    assert found is not None  # noqa: S101 - a constant, by the table
    return found


def _signed(call: Call) -> np.ndarray:
    """The steps relative to their zero points, as signed bytes if they fit."""
    stored = _value(call, 1)
    steps = steps_of(stored) if call.dtype(1) == "int32" else stored
    if call.input(3) is None:
        return steps
    zeros = np.repeat(_value(call, 3), call.attribute("size"), 0)[: len(steps)]
    least = 2**3 if call.dtype(1) == "int32" else 0
    found = steps.astype(np.int16) + least - zeros
    return found.astype(np.int8) if found.min() >= -128 and found.max() <= 127 else found


def _as_float32(steps: np.ndarray, scales: np.ndarray, size: int) -> Any:
    return relax.const(steps.astype(np.float32) * scales[np.arange(len(steps)) // size])


def _product(rows: Any, stored: Any, scales: Any, size: int) -> Any:
    """The product in TE."""
    *lead, depth = rows.shape
    k = tvm.te.reduce_axis((0, depth), "k")

    def element(*at: Any) -> Any:
        *row, column = at
        found = weight(lambda tensor, i: tensor(*i), stored, scales, (k.var, column), 0, size)
        return tvm.te.sum(rows(*row, k) * found, axis=[k])

    return tvm.te.compute((*lead, stored.shape[-1]), element, name="matmul")


OPERATORS = (Operator(NAME, OWN, constant=(1, 2, 3), convert=converted),)
