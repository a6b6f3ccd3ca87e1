"""The operators of the Ansor paper in their four shapes, float32, channels last.

Ten single operators (section 7.1), the two subgraphs (section 7.2), and a convolution as a
network's fusion leaves it: padding, bias and ReLU fused, the weight in any layout. Where paper
and published shapes differ, the published ones count (NRM#4 is 4096 x 1024).

A case is an operator in one of its shapes and a batch: "C2D-3-b16" is the third of 16 images.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tirx, topi

Arguments = tuple[Any, ...]

BATCHES = (1, 16)


@dataclass(frozen=True)
class Operator:
    """make: its inputs and its output, of a batch and the arguments of a shape.

    free: inputs whose layout may be chosen. flops: of a batch and such arguments, where the loops
    spell out more than it takes.
    """

    make: Callable[..., list[Any]]
    shapes: tuple[Arguments, ...]
    free: tuple[int, ...] = ()
    flops: Callable[..., float] | None = None


@dataclass(frozen=True)
class Case:
    """An operator in one shape, counted from one, and a batch."""

    name: str
    shape: int
    batch: int

    def __str__(self) -> str:
        return f"{self.name}-{self.shape}-b{self.batch}"

    @property
    def operator(self) -> Operator:
        """What is computed."""
        return OPERATORS[self.name]

    @property
    def arguments(self) -> Arguments:
        """Of the operator: the batch, then the shape's."""
        return (self.batch, *self.operator.shapes[self.shape - 1])

    @property
    def flops(self) -> float | None:
        """Floating-point operations of a run; None where its loops spell them out."""
        return self.operator.flops and self.operator.flops(*self.arguments)

    def function(self) -> Any:
        """Its program (`tirx.PrimFunc`)."""
        operator = self.operator
        func = te.create_prim_func(operator.make(*self.arguments))
        func = func.with_attr("global_symbol", "main")
        if not operator.free:
            return func
        return func.with_attr("layout_free_buffers", list(operator.free))


def _tensor(name: str, *shape: int) -> Any:
    return te.placeholder(shape, "float32", name)


def convolution(
    batch: int,
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
    data = _tensor("data", batch, *sizes, channels)
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

    return [data, weight, te.compute((batch, *out, filters), cell, f"conv{rank}d")]


def depthwise(
    batch: int, size: int, channels: int, kernel: int, stride: int, pad: int
) -> list[Any]:
    """A filter a channel."""
    data = _tensor("data", batch, size, size, channels)
    weight = _tensor("weight", kernel, kernel, channels)
    padded = topi.nn.pad(data, [0, pad, pad, 0])
    out = (size + 2 * pad - kernel) // stride + 1
    kh, kw = (te.reduce_axis((0, kernel), name) for name in ("kh", "kw"))
    shape = (batch, out, out, channels)
    result = te.compute(
        shape,
        lambda n, h, w, c: te.sum(
            padded[n, h * stride + kh, w * stride + kw, c] * weight[kh, kw, c], axis=[kh, kw]
        ),
        "depthwise",
    )
    return [data, weight, result]


def transposed(
    batch: int, size: int, channels: int, filters: int, kernel: int, stride: int, pad: int
) -> list[Any]:
    """Gathers: an output reads the inputs that scatter to it, and zero between them."""
    data = _tensor("data", batch, size, size, channels)
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

    return [data, weight, te.compute((batch, out, out, filters), cell, "conv2d_transpose")]


def capsules(
    batch: int,
    size: int,
    channels: int,
    filters: int,
    kernel: int,
    stride: int,
    pad: int,
    capsule: int = 4,
) -> list[Any]:
    """A convolution whose elements are small square matrices."""
    data = _tensor("data", batch, size, size, capsule, capsule, channels)
    weight = _tensor("weight", kernel, kernel, capsule, capsule, channels, filters)
    padded = topi.nn.pad(data, [0, pad, pad, 0, 0, 0])
    out = (size + 2 * pad - kernel) // stride + 1
    kh, kw = (te.reduce_axis((0, kernel), name) for name in ("kh", "kw"))
    inner, depth = te.reduce_axis((0, capsule), "inner"), te.reduce_axis((0, channels), "depth")
    result = te.compute(
        (batch, out, out, capsule, capsule, filters),
        lambda n, h, w, i, j, f: te.sum(
            padded[n, h * stride + kh, w * stride + kw, i, inner, depth]
            * weight[kh, kw, inner, j, depth, f],
            axis=[kh, kw, inner, depth],
        ),
        "capsules",
    )
    return [data, weight, result]


def matmul(batch: int, rows: int, columns: int, depth: int) -> list[Any]:
    """Of two matrices, as many times as the batch says."""
    x, y = _tensor("x", batch, rows, depth), _tensor("y", batch, depth, columns)
    k = te.reduce_axis((0, depth), "k")
    shape = (batch, rows, columns)
    product = te.compute(shape, lambda b, i, j: te.sum(x[b, i, k] * y[b, k, j], axis=k), "matmul")
    return [x, y, product]


def norm(batch: int, rows: int, columns: int) -> list[Any]:
    """The Euclidean norm of each matrix."""
    x = _tensor("x", batch, rows, columns)
    i, j = te.reduce_axis((0, rows), "i"), te.reduce_axis((0, columns), "j")
    squares = te.compute(
        (batch,), lambda b: te.sum(x[b, i, j] * x[b, i, j], axis=[i, j]), "squares"
    )
    return [x, te.compute((batch,), lambda b: te.sqrt(squares[b]), "norm")]


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


def attention_scores(batch: int, length: int, heads: int, width: int) -> list[Any]:
    """Queries times keys, both transposed from [length, heads, width], then softmax."""
    query, key = (_tensor(name, batch, length, heads, width) for name in ("query", "key"))
    q = te.compute((batch, heads, length, width), lambda b, h, i, d: query[b, i, h, d], "query_t")
    k = te.compute((batch, heads, width, length), lambda b, h, d, i: key[b, i, h, d], "key_t")
    d = te.reduce_axis((0, width), "d")
    scores = te.compute(
        (batch, heads, length, length),
        lambda b, h, i, j: te.sum(q[b, h, i, d] * k[b, h, d, j], axis=d),
        "scores",
    )
    return [query, key, topi.nn.fast_softmax(scores, -1)]


def _transposed_flops(
    batch: int, size: int, channels: int, filters: int, kernel: int, *_: int
) -> float:
    """Every input meets the whole window: a stride leaves no zeros to multiply with."""
    return 2.0 * batch * size**2 * channels * filters * kernel**2


_IMAGES: tuple[Arguments, ...] = (
    ((224, 224), 3, 64, 7, 2, 3),
    ((56, 56), 64, 64, 1, 1, 0),
    ((14, 14), 256, 256, 3, 1, 1),
    ((7, 7), 512, 512, 3, 1, 1),
)
_VIDEOS = tuple(((16, *sizes), *rest) for sizes, *rest in _IMAGES)
_STRIDED: Arguments = ((56, 56), 64, 128, 3, 2, 1)

OPERATORS = {
    "C1D": Operator(
        convolution,
        (
            ((256,), 64, 128, 3, 2, 1),
            ((128,), 128, 256, 1, 2, 0),
            ((64,), 256, 256, 5, 1, 2),
            ((32,), 512, 512, 3, 1, 1),
        ),
    ),
    "C2D": Operator(convolution, _IMAGES),
    "C3D": Operator(convolution, _VIDEOS),
    "GMM": Operator(matmul, ((128, 128, 128), (512, 32, 512), (512, 512, 512), (1024, 1024, 1024))),
    "GRP": Operator(convolution, tuple((*one, 1, 4) for one in (_STRIDED, *_IMAGES[1:]))),
    "DIL": Operator(convolution, tuple((*one, 2) for one in _IMAGES)),
    "DEP": Operator(
        depthwise, ((112, 32, 3, 1, 1), (112, 64, 3, 2, 1), (14, 512, 3, 2, 1), (7, 1024, 3, 1, 1))
    ),
    "T2D": Operator(
        transposed,
        (
            (4, 512, 256, 4, 2, 1),
            (8, 256, 128, 4, 2, 1),
            (16, 128, 64, 4, 2, 1),
            (32, 64, 3, 4, 2, 1),
        ),
        flops=_transposed_flops,
    ),
    "CAP": Operator(
        capsules,
        (
            (16, 32, 32, 3, 2, 1),
            (8, 32, 32, 3, 1, 1),
            (16, 8, 16, 3, 2, 1),
            (8, 16, 16, 3, 1, 1),
        ),
    ),
    "NRM": Operator(norm, ((256, 256), (512, 512), (1024, 1024), (4096, 1024))),
    "ConvLayer": Operator(
        conv_layer, (_IMAGES[0], _STRIDED, ((28, 28), 128, 256, 1, 2, 0), _IMAGES[3])
    ),
    "TBS": Operator(
        attention_scores, ((128, 12, 64), (128, 16, 64), (64, 12, 128), (128, 12, 128))
    ),
    "Fused": Operator(conv_fused, _IMAGES, free=(1,)),
}
CASES = {
    str(case): case
    for batch in BATCHES
    for shape in (3, 2, 4, 1)  # the middle of a network first: where it spends most of its time
    for name in OPERATORS
    for case in [Case(name, shape, batch)]
}
# The 96 of the paper, in an order that covers the operators first.
PAPER_CASES = [name for name, case in CASES.items() if case.name != "Fused"]
