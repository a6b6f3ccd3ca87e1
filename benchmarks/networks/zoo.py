"""The networks of the Ansor paper, ViT-tiny and SqueezeNet, as ONNX models with random weights.

Batch 1, NCHW, opset 17, one float32 output; batch norms stay nodes, as a training framework
exports them. Every builder takes sizes, so that a test can ask for a small variant, and a
seed: the same arguments give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click
import onnx
from onnx import TensorProto

from benchmarks.networks import light
from benchmarks.networks.onnx_net import Net

RESIDUAL_GAIN = 0.3  # of the last batch norm in a residual branch


def squeezenet(size: int = 224, classes: int = 1000, seed: int = 0) -> onnx.ModelProto:
    """SqueezeNet 1.1: fire modules, biases, no batch norm."""
    net = Net("squeezenet", seed)
    x = net.input("data", (1, 3, size, size))
    x = net.relu(net.conv(x, 64, (3, 3), (2, 2), pads=(0, 0), bias=True))
    for widths in ((16, 16), (32, 32), (48, 48, 64, 64)):
        x = net.node("MaxPool", x, kernel_shape=(3, 3), strides=(2, 2))
        for squeeze in widths:
            x = _fire(net, x, squeeze)
    x = net.relu(net.conv(x, classes, (1, 1), bias=True))
    x = net.node("Softmax", net.node("GlobalAveragePool", x), axis=1)
    return net.model(x, "probabilities", (1, classes, 1, 1))


def _fire(net: Net, x: str, squeeze: int) -> str:
    x = net.relu(net.conv(x, squeeze, (1, 1), bias=True))
    left = net.relu(net.conv(x, 4 * squeeze, (1, 1), bias=True))
    right = net.relu(net.conv(x, 4 * squeeze, (3, 3), bias=True))
    return net.node("Concat", left, right, axis=1, channels=8 * squeeze)


def resnet50(
    size: int = 224,
    width: int = 64,
    blocks: Sequence[int] = (3, 4, 6, 3),
    classes: int = 1000,
    seed: int = 0,
) -> onnx.ModelProto:
    """ResNet-50 v1.5, which has the stride in the 3x3 convolution."""
    net = Net("resnet50", seed)
    x = net.input("data", (1, 3, size, size))
    x = net.relu(net.batch_norm(net.conv(x, width, (7, 7), (2, 2))))
    x = net.node("MaxPool", x, kernel_shape=(3, 3), strides=(2, 2), pads=(1,) * 4)
    for stage, count in enumerate(blocks):
        for block in range(count):
            x = _bottleneck(net, x, width << stage, 2 if stage and not block else 1)
    return net.model(net.classifier(x, classes), "logits", (1, classes))


def _bottleneck(net: Net, x: str, width: int, stride: int) -> str:
    y = net.relu(net.batch_norm(net.conv(x, width, (1, 1))))
    y = net.relu(net.batch_norm(net.conv(y, width, (3, 3), (stride, stride))))
    y = net.batch_norm(net.conv(y, 4 * width, (1, 1)), RESIDUAL_GAIN)
    return net.relu(net.node("Add", y, _shortcut(net, x, 4 * width, (stride, stride))))


def _shortcut(net: Net, x: str, width: int, strides: tuple[int, ...]) -> str:
    """The identity where shapes agree, else a 1x1 convolution."""
    if net.channels[x] == width and max(strides) == 1:
        return x
    return net.batch_norm(net.conv(x, width, (1,) * len(strides), strides), 0.7)


# Expansion, width, repeats and first stride of MobileNet-V2's stages.
MOBILENET_V2 = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
    (6, 320, 1, 1),
)  # fmt: skip


def mobilenet_v2(
    width: float = 1.0,
    size: int = 224,
    blocks: Sequence[tuple[int, int, int, int]] = MOBILENET_V2,
    classes: int = 1000,
    seed: int = 0,
) -> onnx.ModelProto:
    """MobileNet-V2: inverted residuals, depthwise convolutions, ReLU6."""
    net = Net("mobilenet_v2", seed)
    x = net.input("data", (1, 3, size, size))
    x = net.relu6(net.batch_norm(net.conv(x, _by_eight(32 * width), (3, 3), (2, 2))))
    for expansion, base, repeats, first_stride in blocks:
        for block in range(repeats):
            stride = 1 if block else first_stride
            x = _inverted_residual(net, x, expansion, _by_eight(base * width), stride)
    x = net.relu6(net.batch_norm(net.conv(x, _by_eight(1280 * max(width, 1)), (1, 1))))
    return net.model(net.classifier(x, classes), "logits", (1, classes))


def _by_eight(width: float) -> int:
    """The nearest multiple of eight that is at least nine tenths of the width."""
    rounded = max(8, int(width + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * width else rounded


def _inverted_residual(net: Net, x: str, expansion: int, width: int, stride: int) -> str:
    hidden = net.channels[x] * expansion
    y = x
    if expansion != 1:
        y = net.relu6(net.batch_norm(net.conv(y, hidden, (1, 1))))
    y = net.relu6(net.batch_norm(net.conv(y, hidden, (3, 3), (stride, stride), group=hidden)))
    residual = stride == 1 and net.channels[x] == width
    y = net.batch_norm(net.conv(y, width, (1, 1)), RESIDUAL_GAIN if residual else 0.7)
    return net.node("Add", x, y) if residual else y


def resnet3d18(
    frames: int = 16,
    size: int = 112,
    width: int = 64,
    blocks: Sequence[int] = (2, 2, 2, 2),
    classes: int = 400,
    seed: int = 0,
) -> onnx.ModelProto:
    """3D-ResNet-18 (r3d_18): basic blocks of 3x3x3 convolutions over video."""
    net = Net("resnet3d18", seed)
    x = net.input("data", (1, 3, frames, size, size))
    x = net.relu(net.batch_norm(net.conv(x, width, (3, 7, 7), (1, 2, 2))))
    for stage, count in enumerate(blocks):
        for block in range(count):
            x = _basic_block_3d(net, x, width << stage, 2 if stage and not block else 1)
    return net.model(net.classifier(x, classes), "logits", (1, classes))


def _basic_block_3d(net: Net, x: str, width: int, stride: int) -> str:
    strides, kernel = (stride,) * 3, (3, 3, 3)
    y = net.relu(net.batch_norm(net.conv(x, width, kernel, strides)))
    y = net.batch_norm(net.conv(y, width, kernel), RESIDUAL_GAIN)
    return net.relu(net.node("Add", y, _shortcut(net, x, width, strides)))


def dcgan(latent: int = 100, ngf: int = 128, colours: int = 3, seed: int = 0) -> onnx.ModelProto:
    """DCGAN's generator, from a latent vector to a 64x64 image.

    With ngf 64 it consists of the paper's single transposed convolutions (512-256-128-64-3).
    """
    net = Net("dcgan", seed)
    x = net.input("latent", (1, latent, 1, 1))
    x = net.relu(net.batch_norm(net.conv_transpose(x, 8 * ngf, stride=1, pad=0)))
    for width in (4 * ngf, 2 * ngf, ngf):
        x = net.relu(net.batch_norm(net.conv_transpose(x, width, stride=2, pad=1)))
    x = net.node("Tanh", net.conv_transpose(x, colours, stride=2, pad=1))
    return net.model(x, "image", (1, colours, 64, 64))


def bert_base(sequence: int = 128, seed: int = 0) -> onnx.ModelProto:
    """BERT-base, uncased vocabulary."""
    return bert(sequence=sequence, seed=seed)


def bert_small(sequence: int = 128, seed: int = 0) -> onnx.ModelProto:
    """BERT-small: four layers of 512."""
    return bert(layers=4, hidden=512, heads=8, sequence=sequence, seed=seed)


def bert(
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    sequence: int = 128,
    vocabulary: int = 30522,
    mask: bool = False,
    seed: int = 0,
) -> onnx.ModelProto:
    """A BERT encoder from token ids to the last hidden state; `mask` adds an attention mask."""
    net = Net("bert", seed)
    ids = net.input("input_ids", (1, sequence), TensorProto.INT64)
    bias = _mask_bias(net, sequence) if mask else None
    # Embeddings of positions and of the only token type are constants, added here once.
    positions = net.random((1, sequence, hidden), 0.5)
    words = net.node("Gather", net.random((vocabulary, hidden), 1.0), ids, axis=0, channels=hidden)
    x = _layer_norm(net, net.node("Add", words, positions))
    for _ in range(layers):
        x = _layer_norm(net, net.node("Add", x, _attention(net, x, heads, sequence, bias)))
        up = _gelu(net, net.linear(x, 4 * hidden))
        x = _layer_norm(net, net.node("Add", x, net.linear(up, hidden)))
    return net.model(x, "last_hidden_state", (1, sequence, hidden))


def vit_tiny(
    size: int = 224, layers: int = 12, hidden: int = 192, heads: int = 3, seed: int = 0
) -> onnx.ModelProto:
    """ViT-tiny with 16x16 patches, norms first, and no class token: patches are averaged."""
    net, patches = Net("vit_tiny", seed), (size // 16) ** 2
    image = net.input("image", (1, 3, size, size))
    x = net.conv(image, hidden, (16, 16), (16, 16), (0, 0), bias=True)
    flat = net.node("Reshape", x, net.constant([1, hidden, patches], "int64"))
    x = net.node("Transpose", flat, perm=(0, 2, 1), channels=hidden)
    x = net.node("Add", x, net.random((1, patches, hidden), 0.5))
    for _ in range(layers):
        x = net.node("Add", x, _attention(net, _layer_norm(net, x), heads, patches, None))
        up = _gelu(net, net.linear(_layer_norm(net, x), 4 * hidden))
        x = net.node("Add", x, net.linear(up, hidden))
    mean = net.node("ReduceMean", _layer_norm(net, x), axes=[1], keepdims=0, channels=hidden)
    return net.model(net.linear(mean, 1000), "logits", (1, 1000))


def _mask_bias(net: Net, sequence: int) -> str:
    """The attention mask as a term of the scores: 0 where attended, -1e4 where masked."""
    given = net.input("attention_mask", (1, sequence), TensorProto.INT64)
    as_float = net.node("Cast", given, to=TensorProto.FLOAT)
    absent = net.node("Sub", net.constant(1.0), as_float, channels=sequence)
    scaled = net.node("Mul", absent, net.constant(-1e4))
    return net.node("Reshape", scaled, net.constant([1, 1, 1, sequence], "int64"))


def _attention(net: Net, x: str, heads: int, sequence: int, bias: str | None) -> str:
    hidden = net.channels[x]
    depth = hidden // heads
    split = net.constant([1, sequence, heads, depth], "int64")
    query, key, value = (
        net.node("Transpose", net.node("Reshape", net.linear(x, hidden), split), perm=perm)
        for perm in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))
    )
    scores = net.node("Div", net.node("MatMul", query, key), net.constant(depth**0.5))
    if bias is not None:
        scores = net.node("Add", scores, bias)
    mixed = net.node("MatMul", net.node("Softmax", scores, axis=-1), value)
    joined = net.node("Transpose", mixed, perm=(0, 2, 1, 3))
    merge = net.constant([1, sequence, hidden], "int64")
    return net.linear(net.node("Reshape", joined, merge, channels=hidden), hidden)


def _gelu(net: Net, x: str) -> str:
    """GELU, x/2 (1 + erf(x/sqrt 2)), in the nodes that exporters write."""
    erf = net.node("Erf", net.node("Div", x, net.constant(2**0.5)))
    return net.node("Mul", net.node("Mul", x, net.node("Add", erf, net.constant(1.0))),
                    net.constant(0.5))  # fmt: skip


def _layer_norm(net: Net, x: str) -> str:
    width = net.channels[x]
    gamma = net.constant(net.rng.uniform(0.8, 1.2, width))
    beta = net.random((width,), 0.1)
    return net.node("LayerNormalization", x, gamma, beta, axis=-1, epsilon=1e-12)


_MADE = (resnet50, mobilenet_v2, resnet3d18, dcgan, bert_base, bert_small, vit_tiny, squeezenet)
NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {make.__name__: make for make in _MADE}


def network(name: str) -> onnx.ModelProto:
    """One of `NETWORKS`, a light model of the package onnx, or an ONNX file."""
    if name in NETWORKS:
        return NETWORKS[name]()
    return light.load(name) if name in light.NAMES else onnx.load(name)


@click.command
@click.argument("name")
@click.argument("file", type=Path)
def command(name: str, file: Path) -> None:
    """Write a network."""
    onnx.save(network(name), file)
