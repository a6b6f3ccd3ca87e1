"""An operator of ours, in no file: rows multiplied by weights of blocks, which stay as they are.

    y = BlockProduct(x, steps, scales)      y[.., c] = sum over k of
                                            x[.., k] * (float32(steps[k, c]) * scales[k / size, c])

Steps are a byte each, or of four bits, eight a word (`four_bits.py`), which become bytes where many
rows are multiplied by them. So no weight is float32 on its way to the library, where each
would take four or eight times the room, several times. For a GPU they are: its programs read these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from ..._lazy_tvm import relax, tirx, tvm
from ...errors import ModelError
from ..graph.graph import OWN, Shape
from .converting import Call
from .emitter import Emitter
from .four_bits import EACH, FEW, step_of, steps_of, words_of
from .operator import Operator

NAME = "BlockProduct"
# TVM's pattern of what may have an epilogue, which it does not see in sums of such products.
_WITH_EPILOGUE = 4

Load = Callable[[Any, Sequence[Any]], Any]


def block_product(
    emit: Emitter, rows: str, lead: Shape | None, steps: np.ndarray, scales: np.ndarray, size: int
) -> str:
    """Multiply rows of float32 by steps (K, N) of a byte, with a scale for each block of K.

    lead: the shape of rows but for K; None where it is not known yet.
    """
    words = words_of(steps)
    kind = TensorProto.INT8 if words is None else TensorProto.INT32
    stored = emit.constant(steps if words is None else words, kind)
    shape = None if lead is None else (*lead, steps.shape[1])
    given = [rows, stored, emit.constant(scales)]
    return emit.own(NAME, given, TensorProto.FLOAT, shape, size=size)


def weight(load: Load, stored: Any, scales: Any, at: Sequence[Any], axis: int, size: int) -> Any:
    """An element as float32. load: gives that of a tensor. axis: that of the blocks."""
    in_words = str(stored.dtype) == "int32"
    word, block = ([i // each if k == axis else i for k, i in enumerate(at)]
                   for each in (EACH if in_words else 1, size))  # fmt: skip
    found = load(stored, word)
    step = step_of(found, at[axis] % EACH) if in_words else tirx.Cast("float32", found)
    return step * load(scales, block)


def converted(call: Call) -> Any:
    """One function, in which weights become float32 as they are loaded."""
    size = call.attribute("size")
    _check(call, size)
    if "gpu" in tvm.target.Target.current().keys:
        return relax.op.matmul(call.inputs[0], _as_float32(call, size))
    rows, stored, scales = call.inputs
    if call.dtype(1) == "int32" and math.prod(call.shape(0)[:-1]) > FEW:
        stored = relax.const(_steps(call))
    words = {"primfunc_name_hint": "matmul", "primfunc_attrs": {"op_pattern": _WITH_EPILOGUE}}
    return call.emit(call.bb.call_te(_product, rows, stored, scales, size, **words))


def _check(call: Call, size: int) -> None:
    """ModelError where they do not fit each other, as no file of ours has them."""
    depth, each = call.shape(0)[-1], EACH if call.dtype(1) == "int32" else 1
    columns = call.shape(1)[-1]
    if call.shape(1) != (depth / each, columns) or call.shape(2) != (-(-depth // size), columns):
        raise ModelError("the weights of a product of blocks do not fit", "export the model anew")


def _steps(call: Call) -> np.ndarray:
    """The steps as bytes."""
    stored = call.value(1)
    assert stored is not None  # noqa: S101 - a constant, by the table
    return steps_of(stored) if call.dtype(1) == "int32" else stored


def _as_float32(call: Call, size: int) -> Any:
    steps, scales = _steps(call), call.value(2)
    assert scales is not None  # noqa: S101 - a constant, by the table
    return relax.const(steps.astype(np.float32) * scales[np.arange(len(steps)) // size])


def _product(rows: Any, stored: Any, scales: Any, size: int) -> Any:
    """In TE."""
    *lead, depth = rows.shape
    k = tvm.te.reduce_axis((0, depth), "k")

    def element(*at: Any) -> Any:
        *row, column = at
        found = weight(lambda tensor, i: tensor(*i), stored, scales, (k.var, column), 0, size)
        return tvm.te.sum(rows(*row, k) * found, axis=[k])

    return tvm.te.compute((*lead, stored.shape[-1]), element, name="matmul")


OPERATORS = (Operator(NAME, OWN, constant=(1, 2), convert=converted),)
