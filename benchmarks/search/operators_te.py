"""The operators of the Ansor paper in their four shapes, float32, channels last.

These are ten single operators (section 7.1), two subgraphs (section 7.2), and a convolution as
fusion leaves it in a network: with padding, bias and ReLU, and its weight in any layout. Shapes and
operators are those that TVM publishes in its workloads, except for convolutions: even without
groups, TVM's compute the channel by a division, which is not needed. Where the paper and the
published shapes differ, the published ones count (NRM#4 is 4096 x 1024).

A case is an operator with a shape and a batch: "C2D-3-b16" is the third shape with 16 images.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tvm import te, topi
from tvm.s_tir.meta_schedule.testing import te_workload

BATCHES = (1, 16)


@dataclass(frozen=True)
class Operator:
    """An operator. make: its inputs and output, from a batch and the arguments of a shape.

    published: the name under which TVM's workloads have its shapes. free: inputs whose layout may
    be chosen. flops: from the same arguments, for operators whose loops contain more than is
    needed.
    """

    make: Callable[..., Any]
    published: str
    free: tuple[int, ...] = ()
    flops: Callable[..., float] | None = None


@dataclass(frozen=True)
class Case:
    """An operator with a shape, counted from one, and a batch."""

    name: str
    shape: int
    batch: int

    def __str__(self) -> str:
        return f"{self.name}-{self.shape}-b{self.batch}"

    @property
    def operator(self) -> Operator:
        """The operator."""
        return OPERATORS[self.name]

    @property
    def arguments(self) -> tuple[int, ...]:
        """The operator's arguments: the batch, then those of the shape."""
        _, shapes = te_workload.CONFIGS[self.operator.published]
        return (self.batch, *shapes[self.shape - 1][1:])

    @property
    def flops(self) -> float | None:
        """Floating-point operations of a run; None where they are those of its loops."""
        return self.operator.flops and self.operator.flops(*self.arguments)

    def function(self) -> Any:
        """The program (`tirx.PrimFunc`)."""
        operator = self.operator
        func = te.create_prim_func(list(operator.make(*self.arguments)))
        func = func.with_attr("global_symbol", "main")
        if not operator.free:
            return func
        return func.with_attr("layout_free_buffers", list(operator.free))


def _tensor(name: str, *shape: int) -> Any:
    return te.placeholder(shape, "float32", name)


def convolution(rank: int, batch: int, *shape: int) -> list[Any]:
    """A convolution in `rank` dimensions. Padding is a stage of its own.

    shape: sizes, channels, filters, kernel, stride, padding; then dilation and groups, if not one.
    """
    sizes, rest = shape[:rank], shape[rank:]
    channels, filters, kernel, stride, pad, dilation, groups = (*rest, 1, 1)[:7]
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
    batch: int, height: int, width: int, channels: int, kernel: int, stride: int, pad: int
) -> list[Any]:
    """A depthwise convolution, with one filter for each channel."""
    data = _tensor("data", batch, height, width, channels)
    weight = _tensor("weight", kernel, kernel, channels)
    padded = topi.nn.pad(data, [0, pad, pad, 0])
    out = [(size + 2 * pad - kernel) // stride + 1 for size in (height, width)]
    kh, kw = (te.reduce_axis((0, kernel), name) for name in ("kh", "kw"))

    def cell(n: Any, h: Any, w: Any, c: Any) -> Any:
        read = padded[n, h * stride + kh, w * stride + kw, c]
        return te.sum(read * weight[kh, kw, c], axis=[kh, kw])

    return [data, weight, te.compute((batch, *out, channels), cell, "depthwise")]


def conv_layer(*arguments: int) -> list[Any]:
    """Convolution, bias, batch norm as scale and offset, ReLU."""
    data, weight, out = convolution(2, *arguments)
    rows = [_tensor(name, int(out.shape[-1])) for name in ("bias", "scale", "offset")]
    bias, scale, offset = rows
    out = topi.add(topi.multiply(topi.add(out, bias), scale), offset)
    return [data, weight, *rows, topi.nn.relu(out)]


def conv_fused(*arguments: int) -> list[Any]:
    """Convolution, bias, ReLU."""
    data, weight, out = convolution(2, *arguments)
    bias = _tensor("bias", int(out.shape[-1]))
    return [data, weight, bias, topi.nn.relu(topi.add(out, bias))]


def attention_scores(*arguments: int) -> list[Any]:
    """Queries times keys, both transposed from [length, heads, width], then softmax."""
    query, key, scores = te_workload.transpose_batch_matmul(*arguments)
    return [query, key, topi.nn.fast_softmax(scores, -1)]


def _transposed_flops(
    batch: int, height: int, width: int, channels: int, filters: int, kernel: int, *_: int
) -> float:
    """FLOP of a transposed convolution, where each input meets the window once, and no zeros."""
    return 2.0 * batch * height * width * channels * filters * kernel**2


OPERATORS = {
    **{f"C{rank}D": Operator(partial(convolution, rank), f"C{rank}D") for rank in (1, 2, 3)},
    "GMM": Operator(te_workload.batch_matmul_nkkm, "GMM"),
    "GRP": Operator(partial(convolution, 2), "GRP"),
    "DIL": Operator(partial(convolution, 2), "DIL"),
    "DEP": Operator(depthwise, "DEP"),
    "T2D": Operator(te_workload.conv2d_transpose_nhwc, "T2D", flops=_transposed_flops),
    "CAP": Operator(te_workload.conv2d_capsule_nhwijc, "CAP"),
    "NRM": Operator(te_workload.norm_bmn, "NRM"),
    "ConvLayer": Operator(conv_layer, "CBR"),
    "TBS": Operator(attention_scores, "TBG"),
    "Fused": Operator(conv_fused, "C2D", free=(1,)),
}
CASES = {
    str(case): case
    for batch in BATCHES
    for shape in (3, 2, 4, 1)  # middle layers first, where networks spend most of their time
    for name in OPERATORS
    for case in [Case(name, shape, batch)]
}
# The 96 of the paper, in an order that covers all operators first.
PAPER_CASES = [name for name, case in CASES.items() if case.name != "Fused"]
