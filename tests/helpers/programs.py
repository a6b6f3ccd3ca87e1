"""Programs of the kinds that fusion makes of a network, written in TE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm
from tvm import te, topi

from helpers.attention import attention
from helpers.blocks import blocks
from helpers.phases import interleaved, spread
from helpers.recurrence import recurrence


def _in(*shape: int, dtype: str = "float32") -> Any:
    return te.placeholder(shape, dtype=dtype, name="x")


def program(inputs: list[Any], *outputs: Any, free: tuple[int, ...] = ()) -> tvm.IRModule:
    """A module with one function. free: numbers of inputs whose layout may be changed."""
    func = te.create_prim_func([*inputs, *outputs]).with_attr("global_symbol", "main")
    return tvm.IRModule({"main": func.with_attr("layout_free_buffers", list(free))})


def conv2d(
    side: int, cin: int, cout: int, kernel: int = 3, stride: int = 1, pad: int = 1
) -> tvm.IRModule:
    x, w, b = _in(1, side, side, cin), _in(kernel, kernel, cin, cout), _in(cout)
    y = topi.nn.relu(topi.add(topi.nn.conv2d_nhwc(x, w, stride, pad, 1), b))
    return program([x, w, b], y, free=(1,))


def conv2d_residual() -> tvm.IRModule:
    x, w, r = _in(1, 7, 7, 16), _in(3, 3, 16, 24), _in(1, 7, 7, 24)
    y = topi.nn.relu(topi.add(topi.nn.conv2d_nhwc(x, w, 1, 1, 1), r))
    return program([x, w, r], y, free=(1,))


def conv2d_bare(dtype: str = "float32") -> tvm.IRModule:
    x, w = _in(2, 6, 6, 8, dtype=dtype), _in(3, 3, 8, 16, dtype=dtype)
    return program([x, w], topi.nn.conv2d_nhwc(x, w, 1, 0, 1))


def conv2d_clip() -> tvm.IRModule:
    x, w, b = _in(1, 9, 9, 8), _in(1, 1, 8, 40), _in(40)
    y = topi.clip(topi.add(topi.nn.conv2d_nhwc(x, w, 1, 0, 1), b), 0.0, 6.0)
    return program([x, w, b], y, free=(1,))


def depthwise(side: int, channels: int, size: int = 3, stride: int = 1) -> tvm.IRModule:
    x, w, b = _in(1, side, side, channels), _in(size, size, 1, channels), _in(channels)
    y = topi.add(topi.nn.conv(x, w, stride, size // 2, 1, channels, "NHWC", "HWIO"), b)
    return program([x, w, b], topi.nn.relu(y), free=(1,))


def grouped(stride: int = 1, width: int = 8, groups: int = 3) -> tvm.IRModule:
    x, w = _in(1, 8, 8, width * groups), _in(3, 3, width, 2 * width * groups)
    y = topi.nn.conv(x, w, stride, 1, 1, groups, "NHWC", "HWIO")
    return program([x, w], y, free=(1,))


def conv_nd(rank: int) -> tvm.IRModule:
    layout = "DHW"[3 - rank :]
    x, w = _in(1, *[6] * rank, 4), _in(*[3] * rank, 4, 12)
    return program([x, w], topi.nn.conv(x, w, 1, 1, 1, 1, f"N{layout}C", f"{layout}IO"), free=(1,))


def conv_transpose() -> tvm.IRModule:
    x, w = _in(1, 6, 4, 4), _in(6, 5, 4, 4)
    y = topi.nn.conv2d_transpose_nchw(x, w, (2, 2), (1, 1), "float32", (0, 0))
    return program([x, w], topi.tanh(y))


def conv_nchw() -> tvm.IRModule:
    x, w = _in(1, 3, 9, 9), _in(8, 3, 3, 3)
    return program([x, w], topi.nn.conv2d_nchw(x, w, 1, 1, 1))


def matmul(rows: int, depth: int, columns: int, *, transposed: bool = False) -> tvm.IRModule:
    x, b = _in(rows, depth), _in(columns)
    w = _in(columns, depth) if transposed else _in(depth, columns)
    y = topi.add(topi.matmul(x, w, transp_b=transposed), b)
    return program([x, w, b], topi.nn.relu(y), free=(1,))


def matmul_typed(dtype: str, out: str) -> tvm.IRModule:
    x, w = _in(8, 32, dtype=dtype), _in(32, 16, dtype=dtype)
    k = te.reduce_axis((0, 32))
    y = te.compute((8, 16), lambda i, j: te.sum(x[i, k].astype(out) * w[k, j].astype(out), axis=k))
    return program([x, w], y)


def batched(*, transposed: bool, rows: int = 10, columns: int = 20) -> tvm.IRModule:
    x, w = _in(3, rows, 16), _in(3, columns, 16) if transposed else _in(3, 16, columns)
    return program([x, w], topi.nn.batch_matmul(x, w, transpose_b=transposed))


def dot() -> tvm.IRModule:
    x, w, k = _in(100), _in(100), te.reduce_axis((0, 100))
    return program([x, w], te.compute((), lambda: te.sum(x[k] * w[k], axis=k)))


def outer_product() -> tvm.IRModule:
    x, w = _in(7), _in(9)
    return program([x, w], te.compute((7, 9), lambda i, j: x[i] * w[j]))


def pool(kind: str, dims: int, channels: int) -> tvm.IRModule:
    x, op = _in(1, *[9] * dims, channels), getattr(topi.nn, f"pool{dims}d")
    layout = f"N{'DHW'[3 - dims :]}C"
    return program(
        [x], op(x, [3] * dims, [2] * dims, [1] * dims, [1] * 2 * dims, kind, layout=layout)
    )


def pool_nchw() -> tvm.IRModule:
    x = _in(1, 8, 9, 9)
    return program([x], topi.nn.pool2d(x, [2, 2], [2, 2], [1, 1], [0] * 4, "avg", layout="NCHW"))


def softmax(*shape: int, axis: int = -1) -> tvm.IRModule:
    x = _in(*shape)
    return program([x], topi.nn.softmax(x, axis))


def scaled_softmax() -> tvm.IRModule:
    x, m = _in(2, 4, 64), _in(64)
    return program([x, m], topi.nn.fast_softmax(topi.add(topi.divide(x, 8.0), m), -1))


def guarded_softmax(rows: int, width: int) -> tvm.IRModule:
    """A softmax whose rows of only -inf become zeros, as attention masks make them."""
    x = _in(rows, width)
    y = topi.nn.fast_softmax(x, -1)
    return program([x], topi.where(topi.isnan(y), topi.full_like(y, 0.0), y))


def log_softmax() -> tvm.IRModule:
    x = _in(6, 40)
    return program([x], topi.nn.log_softmax(x))


def layer_norm(rows: int, width: int) -> tvm.IRModule:
    x, g, b = _in(rows, width), _in(width), _in(width)
    return program([x, g, b], topi.nn.layer_norm(x, g, b, [1], 1e-5))


def instance_norm() -> tvm.IRModule:
    x, g, b = _in(2, 8, 5, 5), _in(8), _in(8)
    return program([x, g, b], topi.nn.instance_norm(x, g, b, channel_axis=1, axis=[2, 3]))


def reduce(name: str, *shape: int, axis: Any, keepdims: bool = False) -> tvm.IRModule:
    x = _in(*shape)
    return program([x], getattr(topi, name)(x, axis=axis, keepdims=keepdims))


def mean(*shape: int, axis: Any) -> tvm.IRModule:
    x = _in(*shape)
    total = topi.sum(topi.nn.relu(x), axis=axis)
    return program([x], topi.divide(total, 7.0))


def two_reductions() -> tvm.IRModule:
    x = _in(12, 33)
    return program([x], topi.sum(x, axis=1), topi.max(x, axis=1))


def two_reductions_across() -> tvm.IRModule:
    x = _in(12, 32)
    return program([x], topi.sum(x, axis=0), topi.max(x, axis=1))


def normalized_product() -> tvm.IRModule:
    x, w = _in(8, 16), _in(16, 32)
    return program([x, w], topi.nn.softmax(topi.matmul(x, w)))


def two_products() -> tvm.IRModule:
    x, u, w = _in(8, 16), _in(16, 24), _in(24, 32)
    return program([x, u, w], topi.matmul(topi.nn.relu(topi.matmul(x, u)), w), free=(1, 2))


def concat(axis: int) -> tvm.IRModule:
    parts = [_in(2, 5, 6), _in(2, 5, 6), _in(2, 5, 6)]
    return program(parts, topi.concatenate([topi.nn.relu(part) for part in parts], axis))


def gather() -> tvm.IRModule:
    x, i = _in(50, 24), _in(3, 4, dtype="int64")
    return program([x, i], topi.take(x, i, axis=0, mode="clip"))


def transpose(*axes: int) -> tvm.IRModule:
    x = _in(*(6, 10, 12, 3)[: len(axes)])
    return program([x], topi.transpose(x, axes))


def flattened() -> tvm.IRModule:
    x = _in(64, 80)
    return program([x], topi.reshape(topi.transpose(x, (1, 0)), (5120,)))


def crossed() -> tvm.IRModule:
    x = _in(64, 80)
    return program([x], te.compute((5120,), lambda i: x[i % 64, i // 64], name="crossed"))


def add(*shape: int, dtype: str = "float32") -> tvm.IRModule:
    x, y = _in(*shape, dtype=dtype), _in(*shape, dtype=dtype)
    return program([x, y], topi.add(x, y))


def compare_all() -> tvm.IRModule:
    x, y = _in(5, 32), _in(5, 32)
    return program([x, y], topi.logical_not(topi.greater(x, y)))


def where() -> tvm.IRModule:
    c, x, y = _in(5, 32, dtype="bool"), _in(5, 32), _in(5, 32)
    return program([c, x, y], topi.where(c, x, y))


def cast(source: str, to: str) -> tvm.IRModule:
    x = _in(4, 40, dtype=source)
    return program([x], topi.cast(x, to))


def shared_middle() -> tvm.IRModule:
    x = _in(16, 20)
    middle = topi.exp(x)
    return program([x], topi.nn.relu(middle), topi.add(middle, 1.0))


def gated_sum() -> tvm.IRModule:
    """A product whose epilogue adds a chain of elementwise stages."""
    x, w, y, gate = _in(12, 8), _in(8, 32), _in(12, 32), _in(1, 32)
    scaled = topi.multiply(topi.multiply(y, gate), 0.5)
    return program([x, w, y, gate], topi.add(scaled, topi.matmul(x, w)), free=(1,))


def resize() -> tvm.IRModule:
    x = _in(1, 4, 4, 8)
    y = topi.image.resize2d(x, (0.0,) * 4, (8, 8), layout="NHWC", method="linear")
    return program([x], y)


def lrn() -> tvm.IRModule:
    x = _in(1, 8, 5, 5)
    return program([x], topi.nn.lrn(x, 3, 1, 1e-4, 0.75, 1.0))


PROGRAMS: dict[str, Callable[[], tvm.IRModule]] = {
    "conv 13x13": lambda: conv2d(13, 24, 40),
    "conv to 1000": lambda: conv2d(4, 16, 1000, 1, 1, 0),
    "conv from 3": lambda: conv2d(15, 3, 32, 7, 2, 3),
    "conv to 1": lambda: conv2d(8, 16, 1),
    "conv 1 to 1": lambda: conv2d(8, 1, 1),
    "conv to 3": lambda: conv2d(8, 8, 3),
    "conv to prime": lambda: conv2d(5, 7, 37),
    "conv 7x7 to prime": lambda: conv2d(7, 8, 53, 1, 1, 0),
    "conv 1x1 image": lambda: conv2d(1, 32, 64, 1, 1, 0),
    "conv residual": conv2d_residual,
    "conv clip": conv2d_clip,
    "conv bare": conv2d_bare,
    "conv float64": lambda: conv2d_bare("float64"),
    "conv float16": lambda: conv2d_bare("float16"),
    "conv int32": lambda: conv2d_bare("int32"),
    "conv1d": lambda: conv_nd(1),
    "conv3d": lambda: conv_nd(3),
    "conv nchw": conv_nchw,
    "conv transpose": conv_transpose,
    "phases interleaved": lambda: program(interleaved(), free=(1,)),
    "depthwise": lambda: depthwise(7, 24),
    "depthwise prime": lambda: depthwise(5, 13),
    "depthwise 5x5": lambda: depthwise(9, 40, 5),
    "depthwise 5x5 by 2": lambda: depthwise(14, 36, 5, stride=2),
    "grouped": grouped,
    "grouped by 2": lambda: grouped(2, 4, 8),
    "matmul": lambda: matmul(12, 40, 48),
    "matmul transposed": lambda: matmul(12, 40, 48, transposed=True),
    "matmul odd": lambda: matmul(13, 7, 11),
    "matmul prime": lambda: matmul(59, 24, 53),
    "gemv prime": lambda: matmul(1, 64, 101),
    "gemv": lambda: matmul(1, 64, 1000),
    "gemv transposed": lambda: matmul(1, 64, 1000, transposed=True),
    "gemv column": lambda: matmul(64, 32, 1),
    "batched": lambda: batched(transposed=False),
    "batched transposed": lambda: batched(transposed=True),
    "batched prime": lambda: batched(transposed=False, rows=37, columns=53),
    "batched prime transposed": lambda: batched(transposed=True, rows=37, columns=53),
    "int8 product": lambda: matmul_typed("int8", "int32"),
    "uint8 product": lambda: matmul_typed("uint8", "int32"),
    "float16 product": lambda: matmul_typed("float16", "float32"),
    "dot": dot,
    "outer product": outer_product,
    "product then softmax": normalized_product,
    "two products": two_products,
    "attention of tokens": lambda: program(attention(96, 40)),
    "masked attention": lambda: program(attention(17, 29, masked=True)),
    "max pool": lambda: pool("max", 2, 16),
    "max pool 1d": lambda: pool("max", 1, 16),
    "avg pool 3d": lambda: pool("avg", 3, 16),
    "max pool prime": lambda: pool("max", 2, 17),
    "avg pool odd": lambda: pool("avg", 2, 5),
    "pool nchw": pool_nchw,
    "softmax": lambda: softmax(5, 1000),
    "softmax odd": lambda: softmax(3, 4, 37),
    "softmax prime": lambda: softmax(3, 197),
    "softmax one row": lambda: softmax(1, 64),
    "softmax vector": lambda: softmax(64),
    "softmax over rows": lambda: softmax(9, 32, axis=0),
    "softmax over middle": lambda: softmax(2, 9, 32, axis=1),
    "scaled softmax": scaled_softmax,
    "guarded softmax": lambda: guarded_softmax(6, 64),
    "log softmax": log_softmax,
    "layer norm": lambda: layer_norm(6, 768),
    "layer norm odd": lambda: layer_norm(3, 50),
    "layer norm prime": lambda: layer_norm(3, 197),
    "layer norm one row": lambda: layer_norm(1, 64),
    "instance norm": instance_norm,
    "mean of image": lambda: mean(1, 7, 7, 64, axis=(1, 2)),
    "mean of row": lambda: mean(3, 4, 50, axis=(2,)),
    "mean of all": lambda: mean(3, 50, axis=(0, 1)),
    "max of row": lambda: reduce("max", 3, 64, axis=1, keepdims=True),
    "sum of middle": lambda: reduce("sum", 3, 9, 32, axis=1),
    "sum of ends": lambda: reduce("sum", 3, 9, 32, axis=(0, 2)),
    "prod": lambda: reduce("prod", 4, 8, axis=0),
    "argmax of row": lambda: reduce("argmax", 5, 64, axis=1),
    "argmax of column": lambda: reduce("argmax", 5, 64, axis=0),
    "argmin of all": lambda: reduce("argmin", 5, 64, axis=None),
    "two reductions": two_reductions,
    "two reductions across": two_reductions_across,
    "concat rows": lambda: concat(0),
    "concat columns": lambda: concat(2),
    "gather": gather,
    "transpose 2d": lambda: transpose(1, 0),
    "to channels last": lambda: transpose(0, 2, 3, 1),
    "reverse": lambda: transpose(3, 2, 1, 0),
    "add": lambda: add(3, 5, 64),
    "add vector": lambda: add(100),
    "add one": lambda: add(1),
    "add scalar": add,
    "add int8": lambda: add(4, 64, dtype="int8"),
    "add int64": lambda: add(4, 64, dtype="int64"),
    "add float16": lambda: add(4, 64, dtype="float16"),
    "compare": compare_all,
    "where": where,
    "cast to bool": lambda: cast("float32", "bool"),
    "cast to int8": lambda: cast("int32", "int8"),
    "cast from int64": lambda: cast("int64", "float32"),
    "shared middle": shared_middle,
    "gated sum": gated_sum,
    "resize": resize,
    "lrn": lrn,
}


def product() -> tvm.IRModule:
    x, w = _in(12, 8), _in(8, 32)
    return program([x, w], topi.nn.relu(topi.matmul(x, w)), free=(1,))


def bare_product() -> tvm.IRModule:
    x, w = _in(4, 8), _in(8, 16)
    return program([x, w], topi.matmul(x, w))


def line() -> tvm.IRModule:
    x, w = _in(1, 6, 4), _in(3, 4, 12)
    y = topi.nn.relu(topi.nn.conv(x, w, 1, 1, 1, 1, "NWC", "WIO"))
    return program([x, w], y, free=(1,))


# Small enough that drawings of their loops are readable; each is named in tests/golden.
DRAWN: dict[str, Callable[[], tvm.IRModule]] = {
    "depthwise": lambda: depthwise(5, 8, 5),
    "product": product,
    "line": line,
    "bare product": bare_product,
    "chain": lambda: program([x := _in(4, 8)], topi.nn.relu(topi.add(x, 1.0))),
    "spread": lambda: program(spread(), free=(1,)),
    "interleaved": lambda: program(interleaved(), free=(1,)),
    "short rows": lambda: softmax(4, 16),
    "long product": lambda: matmul(2, 16384, 8),
    "two sums": lambda: reduce("sum", 2, 1024, axis=1),
    "two long sums": lambda: reduce("sum", 2, 65536, axis=1),
    "short sum": lambda: add(4, 8),
    "long sum": lambda: add(64, 256),
    "image": lambda: program([x := _in(64, 80)], topi.transpose(x, (1, 0))),
    "planes": lambda: program([x := _in(3, 40, 16)], topi.transpose(x, (1, 2, 0))),
    "flattened": flattened,
    "crossed": crossed,
    "scores": lambda: program(attention(4, 8)),
    "recurrence": lambda: program(*recurrence(), free=(1, 3)),
    "blocks": lambda: program(*blocks(), free=(3, 4)),
}
