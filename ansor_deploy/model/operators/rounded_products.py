"""Rows rounded to bytes times weights in blocks: integer sums within a block, floats beyond.

    most[r, b]   = max over k in block b of |x[r, k]|
    q[r, k]      = int8(round(x[r, k] * 127 / most[r, b]))
    sums[r, b, c] = sum over k in block b of q[r, k] * (words[k / 8, c] >> .. & 15)
    y[r, c]      = sum over b of (sums[r, b, c] - less[r, b]) * (most[r, b] / 127) * scales[b, c]

`accuracy_level` 4 of MatMulNBits allows this, and ONNX Runtime does it. Weights are unsigned:
`less` is what their zero point adds to the sum of a block, zero * sum of q. A word has eight steps
of four bits or four of eight, so that one shift and one mask extract four steps, a byte each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._lazy_tvm import relax, tirx, tvm
from .converting import Call
from .four_bits import EACH, nibble

# TVM's pattern (`op_pattern`) of what may have an epilogue; TVM does not find it for these sums.
WITH_EPILOGUE = 4
# Steps in a word of bytes.
BYTES = 4
# The largest byte of a row.
_MOST = 127


def product(call: Call, stored: np.ndarray, zeros: np.ndarray) -> Any:
    """The product of rows with weights in blocks, given as unsigned steps and zero points.

    For a processor that sums up four products of bytes at once. stored: (K, N), a byte each or
    eight a word.
    """
    size, each = call.attribute("size"), EACH if stored.dtype == np.int32 else BYTES
    one = int(zeros.flat[0]) if (zeros == zeros.flat[0]).all() else None
    times = 1 if one is None else one
    rounded = _emitted(call, _rounding, call.inputs[0], size, times, name="round_rows")
    made, factors, sums = (call.emit(relax.TupleGetItem(rounded, at)) for at in range(3))
    words = relax.const(_in_words(stored, -call.shape(0)[-1] % size))
    given = [made, factors, sums, words, call.inputs[2], each]
    if one is None:
        given.append(relax.const(zeros))
    return _emitted(call, multiplied, *given, name="matmul", op_pattern=WITH_EPILOGUE)


def _in_words(stored: np.ndarray, surplus: int) -> np.ndarray:
    """Steps as words. surplus: missing steps of the last block; rows are zero there."""
    if stored.dtype == np.int32:
        return np.pad(stored, ((0, surplus // EACH), (0, 0)))
    lines = np.pad(stored, ((0, surplus), (0, 0))).reshape(-1, BYTES, stored.shape[1])
    return np.ascontiguousarray(lines.transpose(0, 2, 1)).view(np.int32)[..., 0]


def floats(call: Call, size: int) -> Any:
    """Rows as the floats that their bytes stand for, for processors that multiply floats faster."""
    return _emitted(call, _as_floats, call.inputs[0], size, name="round_rows")


def _rounding(rows: Any, size: int, zero: int) -> list[Any]:
    """In TE: bytes as (.., blocks, size), factors, and what a zero point adds to sums of bytes."""
    made, factors = _bytes(rows, size)
    n = tvm.te.reduce_axis((0, size), "n")

    def summed(*at: Any) -> Any:
        return tvm.te.sum(tirx.Cast("int32", made(*at, n)), axis=[n])

    sums = tvm.te.compute(factors.shape, summed, name="sums")
    less = tvm.te.compute(factors.shape, lambda *at: sums(*at) * zero, name="less")
    return [made, factors, less]


def _as_floats(rows: Any, size: int) -> Any:
    """In TE: rows of float32."""
    made, factors = _bytes(rows, size)

    def element(*at: Any) -> Any:
        *row, k = at
        byte = made(*row, k // size, k % size)
        return tirx.Cast("float32", byte) * factors(*row, k // size)

    return tvm.te.compute(rows.shape, element, name="floats")


def _bytes(rows: Any, size: int) -> tuple[Any, Any]:
    """In TE: bytes as (.., blocks, size), since a block has one factor; and the factors."""
    te, (*lead, depth) = tvm.te, rows.shape
    blocks, none = [*lead, -(-int(depth) // size)], tirx.const(0, "float32")
    k = te.reduce_axis((0, size), "k")

    def element(*at: Any) -> Any:
        *row, block, step = at
        place = block * size + step
        value = rows(*row, place)
        return tirx.if_then_else(place < depth, value, none) if int(depth) % size else value

    most = te.compute(blocks, lambda *at: te.max(tirx.abs(element(*at, k)), axis=[k]), name="most")
    factors = te.compute(blocks, lambda *at: most(*at) / tirx.const(_MOST, "float32"), name="steps")
    times = te.compute(
        blocks, lambda *at: tirx.Select(factors(*at) > 0, 1 / factors(*at), none), name="times"
    )
    rounded = te.compute(
        [*blocks, size],
        lambda *at: tirx.Cast("int8", tirx.round(element(*at) * times(*at[:-1]))),
        name="rounded",
    )
    return rounded, factors


def multiplied(
    rows: Any, factors: Any, less: Any, words: Any, scales: Any, each: int, zeros: Any = None
) -> Any:
    """The product in TE. less: what one zero point adds to sums; with zeros, the sums of rows."""
    te, (*lead, blocks, size) = tvm.te, rows.shape
    columns = words.shape[-1]
    k, b = te.reduce_axis((0, size), "k"), te.reduce_axis((0, blocks), "b")

    def of_block(*at: Any) -> Any:
        *row, block, column = at
        weight = _weight(words, block * size + k, column, each)
        return te.sum(tirx.Cast("int32", rows(*row, block, k)) * weight, axis=[k])

    sums = te.compute((*lead, blocks, columns), of_block, name="blocks")

    def element(*at: Any) -> Any:
        *row, column = at
        whole, zero = sums(*row, b, column), less(*row, b)
        if zeros is not None:
            zero = zero * tirx.Cast("int32", zeros(b, column))
        whole = tirx.Cast("float32", whole - zero)
        return te.sum(whole * (factors(*row, b) * scales(b, column)), axis=[b])

    return te.compute((*lead, columns), element, name="matmul")


def _weight(words: Any, step: Any, column: Any, each: int) -> Any:
    """A weight as an unsigned integer."""
    shift, mask = (4 * nibble(step % each), 15) if each == EACH else (8 * (step % each), 255)
    word = words(step // each, column)
    return tirx.shift_right(word, tirx.Cast("int32", shift)) & tirx.const(mask, "int32")


def _emitted(call: Call, program: Any, *given: Any, name: str, **attributes: Any) -> Any:
    """The results of a program that is given in TE."""
    words = {"primfunc_name_hint": name, "primfunc_attrs": attributes}
    return call.emit(call.bb.call_te(program, *given, **words))
