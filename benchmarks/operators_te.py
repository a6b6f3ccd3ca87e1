"""The operators of the Ansor paper, one shape each, batch 1, float32, channels last.

Ten single operators (section 7.1), the two subgraphs (section 7.2), and a convolution as a
network's fusion leaves it: padding, bias and ReLU fused, the weight in any layout. Where paper
and published shapes differ, the published ones count (NRM#4 is 4096 x 1024).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tirx, topi


@dataclass(frozen=True)
class Operator:
    """make: its inputs and its output. free: inputs whose layout may be chosen.

    flops: of one run, where those that its loops spell out are more than it takes.
    """

    make: Callable[[], list[Any]]
    free: tuple[int, ...] = ()
    flops: float | None = None

    def function(self) -> Any:
        """Its program (`tirx.PrimFunc`)."""
        func = te.create_prim_func(self.make()).with_attr("global_symbol", "main")
        return func.with_attr("layout_free_buffers", list(self.free)) if self.free else func


def _tensor(name: str, *shape: int) -> Any:
    return te.placeholder(shape, "float32", name)


def convolution(
    sizes: Sequence[int],
    channels: int,
    filters: int,
    kernel: int,
    stride: int,
    pad: int,
    dilation: int = 1,
    groups: int = 1,
) -> list[Any]:
    """In as many dimensions as there are sizes. Padding is a stage of its own."""
    rank = len(sizes)
    data = _tensor("data", 1, *sizes, channels)
    weight = _tensor("weight", *[kernel] * rank, channels // groups, filters)
    padded = topi.nn.pad(data, [0, *[pad] * rank, 0])
    out = [(size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for size in sizes]
    window = [te.reduce_axis((0, kernel), f"k{dim}") for dim in range(rank)]
    depth = te.reduce_axis((0, channels // groups), "depth")

    def cell(n: Any, *at: Any) -> Any:
        *place, filter_ = at
        read = [p * stride + k * dilation for p, k in zip(place, window, strict=True)]
        channel = depth
        if groups > 1:
            channel = filter_ // (filters // groups) * (channels // groups) + depth
        product = padded(n, *read, channel) * weight(*window, depth, filter_)
        return te.sum(product, axis=[*window, depth])

    return [data, weight, te.compute((1, *out, filters), cell, f"conv{rank}d")]


def depthwise(size: int, channels: int, kernel: int, stride: int, pad: int) -> list[Any]:
    """A filter a channel."""
    data = _tensor("data", 1, size, size, channels)
    weight = _tensor("weight", kernel, kernel, channels)
    padded = topi.nn.pad(data, [0, pad, pad, 0])
    out = (size + 2 * pad - kernel) // stride + 1
    kh, kw = (te.reduce_axis((0, kernel), name) for name in ("kh", "kw"))
    shape = (1, out, out, channels)
    result = te.compute(
        shape,
        lambda n, h, w, c: te.sum(
            padded[n, h * stride + kh, w * stride + kw, c] * weight[kh, kw, c], axis=[kh, kw]
        ),
        "depthwise",
    )
    return [data, weight, result]


def transposed(
    size: int, channels: int, filters: int, kernel: int, stride: int, pad: int
) -> list[Any]:
    """Gathers: an output reads the inputs that scatter to it, and zero between them."""
    data = _tensor("data", 1, size, size, channels)
    weight = _tensor("weight", kernel, kernel, channels, filters)
    reach = kernel - 1 - pad  # rows of the stretched input above the first output's
    border = -(-reach // stride)
    padded = topi.nn.pad(data, [0, border, border, 0])
    shift = border * stride - reach
    out = (size - 1) * stride - 2 * pad + kernel
    kh, kw = (te.reduce_axis((0, kernel), name) for name in ("kh", "kw"))
    depth = te.reduce_axis((0, channels), "depth")

    def cell(n: Any, h: Any, w: Any, filter_: Any) -> Any:
        row, column = h + kh + shift, w + kw + shift
        hit = te.all(row % stride == 0, column % stride == 0)
        read = padded[n, row // stride, column // stride, depth]
        value = te.if_then_else(hit, read, tirx.const(0.0, "float32"))
        tap = weight[kernel - 1 - kh, kernel - 1 - kw, depth, filter_]
        return te.sum(value * tap, axis=[kh, kw, depth])

    return [data, weight, te.compute((1, out, out, filters), cell, "conv2d_transpose")]


def capsules(
    size: int, channels: int, filters: int, kernel: int, stride: int, pad: int, capsule: int = 4
) -> list[Any]:
    """A convolution whose elements are small square matrices."""
    data = _tensor("data", 1, size, size, capsule, capsule, channels)
    weight = _tensor("weight", kernel, kernel, capsule, capsule, channels, filters)
    padded = topi.nn.pad(data, [0, pad, pad, 0, 0, 0])
    out = (size + 2 * pad - kernel) // stride + 1
    kh, kw = (te.reduce_axis((0, kernel), name) for name in ("kh", "kw"))
    inner, depth = te.reduce_axis((0, capsule), "inner"), te.reduce_axis((0, channels), "depth")
    result = te.compute(
        (1, out, out, capsule, capsule, filters),
        lambda n, h, w, i, j, f: te.sum(
            padded[n, h * stride + kh, w * stride + kw, i, inner, depth]
            * weight[kh, kw, inner, j, depth, f],
            axis=[kh, kw, inner, depth],
        ),
        "capsules",
    )
    return [data, weight, result]


def matmul(rows: int, columns: int, depth: int) -> list[Any]:
    """Of a batch of one."""
    x, y = _tensor("x", 1, rows, depth), _tensor("y", 1, depth, columns)
    k = te.reduce_axis((0, depth), "k")
    shape = (1, rows, columns)
    product = te.compute(shape, lambda b, i, j: te.sum(x[b, i, k] * y[b, k, j], axis=k), "matmul")
    return [x, y, product]


def norm(rows: int, columns: int) -> list[Any]:
    """The Euclidean norm of a matrix."""
    x = _tensor("x", 1, rows, columns)
    i, j = te.reduce_axis((0, rows), "i"), te.reduce_axis((0, columns), "j")
    squares = te.compute((1,), lambda b: te.sum(x[b, i, j] * x[b, i, j], axis=[i, j]), "squares")
    return [x, te.compute((1,), lambda b: te.sqrt(squares[b]), "norm")]


def conv_layer(*arguments: Any) -> list[Any]:
    """Convolution, bias, batch norm as scale and offset, ReLU."""
    data, weight, out = convolution(*arguments)
    rows = [_tensor(name, int(out.shape[-1])) for name in ("bias", "scale", "offset")]
    bias, scale, offset = rows
    out = topi.add(topi.multiply(topi.add(out, bias), scale), offset)
    return [data, weight, *rows, topi.nn.relu(out)]


def conv_fused(*arguments: Any) -> list[Any]:
    """Convolution, bias, ReLU."""
    data, weight, out = convolution(*arguments)
    bias = _tensor("bias", int(out.shape[-1]))
    return [data, weight, bias, topi.nn.relu(topi.add(out, bias))]


def attention_scores(length: int, heads: int, width: int) -> list[Any]:
    """Queries times keys, both transposed from [length, heads, width], then softmax."""
    query, key = (_tensor(name, 1, length, heads, width) for name in ("query", "key"))
    q = te.compute((1, heads, length, width), lambda b, h, i, d: query[b, i, h, d], "query_t")
    k = te.compute((1, heads, width, length), lambda b, h, d, i: key[b, i, h, d], "key_t")
    d = te.reduce_axis((0, width), "d")
    scores = te.compute(
        (1, heads, length, length),
        lambda b, h, i, j: te.sum(q[b, h, i, d] * k[b, h, d, j], axis=d),
        "scores",
    )
    return [query, key, topi.nn.fast_softmax(scores, -1)]


# A transposed convolution multiplies only a quarter of its window by inputs, at a stride of two.
_T2D_FLOPS = 2.0 * 16 * 16 * 128 * 256 * 2 * 2

OPERATORS = {
    "C1D": Operator(lambda: convolution([64], 256, 256, 5, 1, 2)),
    "C2D": Operator(lambda: convolution([14, 14], 256, 256, 3, 1, 1)),
    "C3D": Operator(lambda: convolution([16, 7, 7], 512, 512, 3, 1, 1)),
    "GMM": Operator(lambda: matmul(1024, 1024, 1024)),
    "GRP": Operator(lambda: convolution([56, 56], 64, 64, 1, 1, 0, groups=4)),
    "DIL": Operator(lambda: convolution([14, 14], 256, 256, 3, 1, 1, dilation=2)),
    "DEP": Operator(lambda: depthwise(14, 512, 3, 2, 1)),
    "T2D": Operator(lambda: transposed(8, 256, 128, 4, 2, 1), flops=_T2D_FLOPS),
    "CAP": Operator(lambda: capsules(16, 32, 32, 3, 2, 1)),
    "NRM": Operator(lambda: norm(4096, 1024)),
    "ConvLayer": Operator(lambda: conv_layer([56, 56], 64, 128, 3, 2, 1)),
    "TBS": Operator(lambda: attention_scores(128, 12, 64)),
    "C2D-fused": Operator(lambda: conv_fused([14, 14], 256, 256, 3, 1, 1), free=(1,)),
}
