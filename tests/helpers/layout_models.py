"""Small models for each rule of the channels-last layout, by what they test."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from helpers.graphs import either, model, node, randn

IMAGE = {"x": (2, 6, 7, 6)}  # more channels than images whose convolutions keep their layout
CONV = node("Conv", "x w", "c", pads=[1] * 4)
OTHER = node("Conv", "x w2", "d", pads=[1] * 4)
WEIGHTS = {"w": randn(1, 8, 6, 3, 3), "w2": randn(2, 8, 6, 3, 3)}


def after(
    *nodes: onnx.NodeProto, outputs: tuple[str, ...] = ("y",), opset: int = 17, **constants: Any
) -> onnx.ModelProto:
    """A convolution `c` of x, a second one, `d`, if it is read, and then these nodes."""
    convs = [CONV, *([OTHER] if any("d" in n.input for n in nodes) else [])]
    every = [*convs, *nodes]
    read = {name for n in every for name in n.input}
    known = {k: v for k, v in {**WEIGHTS, **constants}.items() if k in read}
    return model(every, IMAGE, outputs, known, opset)


def conv(*shape: int, kernel: tuple[int, ...], **attributes: Any) -> onnx.ModelProto:
    weights = {"w": randn(1, *kernel), "b": randn(2, kernel[0])}
    return model([node("Conv", "x w b", "y", **attributes)], {"x": shape}, constants=weights)


def pooled(rank: int, op: str, **attributes: Any) -> onnx.ModelProto:
    """A pool after a convolution, in `rank` dimensions."""
    nodes = [node("Conv", "x w", "c", pads=[1] * 2 * rank), node(op, "c", "y", **attributes)]
    weights = {"w": randn(1, 8, 6, *[3] * rank)}
    return model(nodes, {"x": (1, 6, *(11, 10, 9)[:rank])}, constants=weights)


def reduced(op: str, axes: list[int] | None, keepdims: int) -> onnx.ModelProto:
    chosen = {"axes": axes} if axes else {}
    return after(node(op, "c", "y", keepdims=keepdims, **chosen))


def both(*nodes: onnx.NodeProto, **inputs: tuple[int, ...]) -> onnx.ModelProto:
    return model([CONV, *nodes], {**IMAGE, **inputs}, constants={"w": WEIGHTS["w"]})


def shuffled(*behind: onnx.NodeProto) -> onnx.ModelProto:
    """The channels of a convolution in two groups, `s`, which change places, and these nodes."""
    split, back = np.array([2, 2, 4, 7, 6]), np.array([2, 8, 7, 6])
    return after(
        node("Reshape", "c split", "s"),
        node("Transpose", "s", "t", perm=[0, 2, 1, 3, 4]),
        node("Reshape", "t back", "r"),
        *behind,
        split=split,
        back=back,
        one=np.array([1]),
        p=randn(3, 4, 8, 1, 1),
    )


def squeeze_excite() -> onnx.ModelProto:
    return after(
        node("GlobalAveragePool", "c", "g"),
        node("Conv", "g s", "h"),
        node("Relu", "h", "r"),
        node("Conv", "r t", "e"),
        node("Sigmoid", "e", "f"),
        node("Mul", "c f", "y"),
        s=randn(3, 4, 8, 1, 1),
        t=randn(4, 8, 4, 1, 1),
    )


def branches() -> onnx.ModelProto:
    choice = either("p", "y", [node("Relu", "c", "t")], [node("Neg", "c", "e")])
    return after(
        node("ReduceMean", "x", "m", keepdims=0), node("Greater", "m z", "p"), choice, z=_f(0)
    )


def _f(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def _pools() -> dict[str, onnx.ModelProto]:
    models = {}
    for rank in (1, 2, 3):
        three, two, one = ([n] * rank for n in (3, 2, 1))
        shape, stride, pad = {"kernel_shape": three}, {"strides": two}, {"pads": one * 2}
        models |= {
            f"max pool {rank}d": pooled(rank, "MaxPool", **shape, **stride, **pad),
            f"max pool ceil {rank}d": pooled(rank, "MaxPool", **shape, **stride, ceil_mode=1),
            f"avg pool ceil {rank}d": pooled(rank, "AveragePool", **shape, **stride, ceil_mode=1),
            f"avg pool padded {rank}d": pooled(rank, "AveragePool", **shape, **pad),
            f"avg pool counting pads {rank}d": pooled(
                rank, "AveragePool", **shape, **pad, count_include_pad=1
            ),
            f"global average {rank}d": pooled(rank, "GlobalAveragePool"),
            f"global max {rank}d": pooled(rank, "GlobalMaxPool"),
        }
    return models


def _convolutions() -> dict[str, onnx.ModelProto]:
    return {
        "conv1d": conv(1, 4, 11, kernel=(8, 4, 3), pads=[1, 1]),
        "conv2d": conv(1, 3, 9, 9, kernel=(8, 3, 3, 3), pads=[1] * 4),
        "one channel": conv(1, 1, 9, 9, kernel=(8, 1, 3, 3), pads=[1] * 4),
        "few channels": conv(
            2, 3, 9, 10, kernel=(8, 3, 3, 2), pads=[0, 1, 2, 3], strides=[2, 1], dilations=[2, 1]
        ),
        "patches": conv(1, 3, 8, 8, kernel=(8, 3, 4, 4), strides=[4, 4]),
        "conv3d": conv(1, 3, 5, 6, 7, kernel=(8, 3, 3, 3, 3), pads=[1] * 6),
        "grouped": conv(2, 6, 9, 9, kernel=(8, 3, 3, 3), group=2),
        "depthwise": conv(2, 6, 9, 9, kernel=(6, 1, 3, 3), group=6),
        "depthwise multiplied": conv(2, 6, 9, 9, kernel=(12, 1, 3, 3), group=6),
        "dilated": conv(2, 6, 9, 9, kernel=(8, 6, 3, 3), dilations=[2, 1]),
        "strided": conv(2, 6, 9, 9, kernel=(8, 6, 3, 3), strides=[2, 1]),
        "asymmetric": conv(2, 6, 9, 9, kernel=(8, 6, 3, 3), pads=[0, 1, 2, 3]),
        "same upper": conv(2, 6, 9, 9, kernel=(8, 6, 3, 3), auto_pad="SAME_UPPER", strides=[2, 2]),
        "weights computed": both(node("Conv", "c q", "y"), q=(4, 8, 3, 3)),
        "transposed": after(
            node("ConvTranspose", "c k", "y", strides=[2, 2], pads=[1] * 4), k=randn(3, 8, 5, 3, 3)
        ),
        "squeeze and excite": squeeze_excite(),
    }


def _elementwise() -> dict[str, onnx.ModelProto]:
    return {
        "add vector": after(node("Add", "c k", "y"), k=randn(3, 6)),
        "add channels": after(node("Add", "c k", "y"), k=randn(3, 8, 1, 1)),
        "add scalar": after(node("Mul", "c k", "y"), k=_f(3)),
        "subtract from image": after(node("Sub", "k c", "y"), k=randn(3, 7, 6)),
        "add rank 5": after(node("Add", "c k", "y"), k=randn(3, 2, 2, 8, 1, 1)),
        "add lower rank": both(node("Add", "c q", "y"), q=(8, 7, 6)),
        "multiply channels": both(node("Mul", "c q", "y"), q=(2, 8, 1, 1)),
        "add to both": after(node("Add", "c d", "y")),
        "where": after(node("Greater", "c k", "m"), node("Where", "m c k", "y"), k=_f(0)),
        "clip both": after(node("Clip", "c l h", "y"), l=_f(-0.2), h=_f(0.3)),
        "clip low": after(node("Clip", "c l", "y"), l=_f(-0.2)),
        "clip high": after(node("Clip", "c - h", "y"), h=_f(0.2)),
        "clip none": after(node("Clip", "c", "y")),
        "clip inverted": after(node("Clip", "c l h", "y"), l=_f(0.2), h=_f(-0.3)),
        "clip of opset 6": after(node("Clip", "c", "y", min=-0.2), opset=6),
        "clip computed": after(node("ReduceMean", "x", "m", keepdims=0), node("Clip", "c m", "y")),
        "prelu": after(node("PRelu", "c k", "y"), k=randn(3, 8, 1, 1)),
    }


def _reductions() -> dict[str, onnx.ModelProto]:
    axes: list[list[int] | None] = [[2, 3], [1], [-1], [0, 1], [1, 2], [1, 2, 3], None]
    models = {
        f"mean over {chosen} keeping {keep}": reduced("ReduceMean", chosen, keep)
        for chosen in axes
        for keep in (0, 1)
    }
    return {
        **models,
        "maximum over image": reduced("ReduceMax", [2, 3], 0),
        "product over channels": reduced("ReduceProd", [1], 1),
        "softmax over channels": after(node("Softmax", "c", "y", axis=1)),
        "softmax over columns": after(node("Softmax", "c", "y", axis=-1)),
        "log softmax": after(node("LogSoftmax", "c", "y", axis=1)),
        "argmax": after(node("ArgMax", "c", "i", axis=1), node("Cast", "i", "y", to=1)),
        "running sum": after(node("CumSum", "c k", "y"), k=np.array(1)),
        "largest": after(node("TopK", "c k", "y i", axis=1), k=np.array([2])),
        "lrn": after(node("LRN", "c", "y", size=3)),
        "mean and gemm": after(
            node("ReduceMean", "c", "m", axes=[2, 3], keepdims=0),
            node("Gemm", "m k", "y"),
            k=randn(3, 8, 10),
        ),
    }


def _rearranging() -> dict[str, onnx.ModelProto]:
    reflected = np.array([0, 0, 2, 3, 0, 0, 1, 2])
    pads, gap = np.array([0, 1, 2, 3, 0, 0, 1, 2]), node("GlobalAveragePool", "c", "g")
    resize = node("Resize", "c - s", "y", mode="linear")
    swap = {"perm": [0, 2, 3, 1]}
    return {
        **{f"concat on {a}": after(node("Concat", "c d", "y", axis=a)) for a in (0, 1, 2, -1)},
        "concat constant": after(node("Concat", "c k", "y", axis=1), k=randn(3, 2, 3, 7, 6)),
        "concat with input": after(node("Concat", "c x", "y", axis=1)),
        "split": after(node("Split", "c s", "y z", axis=1), outputs=("y", "z"), s=np.array([3, 5])),
        "slice": after(
            node("Slice", "c b e a t", "y"),
            b=np.array([1, -1, 0]),
            e=np.array([7, 0, 5]),
            a=np.array([1, 2, -1]),
            t=np.array([2, -2, 1]),
        ),
        "split and swapped": after(
            node("Split", "c s", "e f", axis=1),
            node("Relu", "f", "g"),
            node("Concat", "g e", "y", axis=1),
            s=np.array([3, 5]),
        ),
        "gather": after(node("Gather", "c i", "y", axis=2), i=np.array([3, 0, 0])),
        "gather one": after(node("Gather", "c i", "y", axis=2), i=np.array(2)),
        "pad": after(node("Pad", "c p v", "y"), p=pads, v=_f(1.5)),
        "pad reflecting": after(node("Pad", "c p", "y", mode="reflect"), p=reflected),
        "pad cropping": after(node("Pad", "c p", "y"), p=-pads // 2),
        "flatten": after(node("Flatten", "c", "y")),
        "pool, flatten": after(gap, node("Flatten", "g", "y")),
        "pool, reshape": after(gap, node("Reshape", "g s", "y"), s=np.array([2, -1])),
        "pool, squeeze": after(gap, node("Squeeze", "g s", "y"), s=np.array([2, 3])),
        "pool, unsqueeze": after(gap, node("Unsqueeze", "g s", "y"), s=np.array([1])),
        "reshape": after(node("Reshape", "c s", "y"), s=np.array([2, 2, 4, 42])),
        "resize": after(resize, s=np.array([1, 1, 2, 2], np.float32)),
        "to channels last and back": after(
            node("Transpose", "c", "t", **swap),
            node("Add", "t k", "u"),
            node("Transpose", "u", "v", perm=[0, 3, 1, 2]),
            node("MaxPool", "v", "y", kernel_shape=[2, 2]),
            k=randn(3, 8),
        ),
        "transpose": after(node("Transpose", "c", "y", perm=[3, 1, 0, 2])),
        "both forms": after(
            node("Flatten", "c", "f"),
            node("MatMul", "f k", "y"),
            node("MaxPool", "c", "z", kernel_shape=[2, 2]),
            outputs=("y", "z"),
            k=randn(3, 336, 4),
        ),
        "several outputs": after(node("Neg", "c", "z"), outputs=("c", "z")),
        "output is input": model([node("Relu", "x", "y")], IMAGE, ("y", "x")),
        "output is constant": model([node("Relu", "x", "y")], IMAGE, ("y", "k"), {"k": _f(3)}),
        "branches": branches(),
    }


def _shuffling() -> dict[str, onnx.ModelProto]:
    return {
        "shuffled": shuffled(node("Conv", "r p", "y")),
        "shuffled twice": shuffled(
            node("ReduceSum", "s one", "m", keepdims=0),
            node("Transpose", "s", "u", perm=[0, 2, 1, 4, 3]),
            node("ReduceMax", "u", "v", axes=[0, 1, 2, 4], keepdims=0),
            node("Conv", "r p", "q"),
            node("Add", "m q", "a"),
            node("Add", "a v", "y"),
        ),
    }


MODELS = {
    **_convolutions(),
    **_pools(),
    **_elementwise(),
    **_reductions(),
    **_rearranging(),
    **_shuffling(),
}
