"""Prepare a model for the quantiser: which operators to quantise, and the model's own names."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import onnx
from onnx import ModelProto, helper, version_converter

from ..errors import ModelError, UsageError
from ..model.graph.nodes import computed_by, with_names
from ..model.graph.places import Node
from ..model.onnx.bind import declared_shape, model_inputs
from .samples import Input

OPSET = 13  # the first in which scales have an axis, so that each channel can have its own
_QUANTISED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv")
_CLOSE = 3  # similar names that a hint lists
_NORMS = {"LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization"}
_STREAM = {*_NORMS, "Add", "Mul", "Softmax", "Where"}


@dataclass(frozen=True)
class Ready:
    """A model for the quantiser: optimised, with shapes. path: its file.

    computes: for each of its nodes, by name, the nodes of the original model. makers: for each
    tensor of the original model, the name of the node that makes it.
    """

    path: Path
    proto: ModelProto
    computes: dict[str, tuple[Node, ...]]
    makers: dict[str, str]

    def layer(self, name: str) -> str:
        """The original model's node that names a node here: the one with its operator, if any."""
        (op,) = (node.op_type for node in self.proto.graph.node if node.name == name)
        nodes = self.computes.get(name) or (Node(name, op),)
        return next((one.name for one in nodes if one.op == op), nodes[0].name)

    def left_out(self, layers: Iterable[str]) -> list[str]:
        """The names of its nodes that compute some layers; UsageError for an unknown layer.

        layers: names of layers, or shell patterns of names.
        """
        named: dict[str, list[str]] = {}
        for node in self.proto.graph.node:
            of = {one.name for one in self.computes.get(node.name, ())} | {node.name}
            # A convolution that absorbed a batch norm makes the norm's result.
            of |= {self.makers[name] for name in node.output if name in self.makers}
            for one in of:
                named.setdefault(one, []).append(node.name)
        chosen = [one for layer in layers for one in _matching(layer, named)]
        return sorted({name for one in chosen for name in named[one]})

    def kinds(self, all_kinds: Iterable[str]) -> list[str]:
        """The operators to quantise, out of all that can be.

        The residual stream of a transformer has a few large values, so that one scale for all of it
        leaves nothing of the others. Where there are layer norms, therefore, norms, sums, products
        and softmaxes stay float, and matrix products are quantised. (For a ViT, the difference at
        the output was 40% with all operators, and 4% so.)
        """
        has = {node.op_type for node in self.proto.graph.node}
        stream = bool(has & _NORMS) or {"ReduceMean", "Sqrt"} <= has
        return sorted(set(all_kinds) - (_STREAM if stream else set()))


def inputs_of(proto: ModelProto, shapes: dict[str, tuple[int, ...]]) -> list[Input]:
    """The inputs of a model. shapes: by name, for what the model leaves open."""
    return [
        Input(value.name, _shape(value, shapes.get(value.name, ())), _dtype(value))
        for value in model_inputs(proto)
    ]


def _shape(value: onnx.ValueInfoProto, given: tuple[int, ...]) -> tuple[int | None, ...]:
    declared = declared_shape(value)
    if declared is None:
        if given:
            return given
        hint = f"say what it is: --input-shape {value.name}=1,3,224,224"
        raise UsageError(f"the model says nothing of the shape of its input {value.name!r}", hint)
    known = given if len(given) == len(declared) else [None] * len(declared)
    return tuple(
        extent if isinstance(extent, int) else size
        for extent, size in zip(declared, known, strict=True)
    )


def _dtype(value: onnx.ValueInfoProto) -> str:
    return str(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))


def ready(proto: ModelProto, folder: Path) -> Ready:
    """Prepare a model, in files of a folder; ModelError if that is not possible."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    if found := [node.op_type for node in proto.graph.node if node.op_type in _QUANTISED]:
        hint = "build it as it is, without --precision int8"
        raise ModelError(f"the model is quantised already: it has {found[0]}", hint)
    named = with_names(_in_opset(proto))
    source, path = folder / "named.onnx", folder / "ready.onnx"
    onnx.save(named, source)
    quant_pre_process(str(source), str(path), skip_symbolic_shape=True)
    made = with_names(onnx.load(path))
    _give_own_biases(made.graph)
    onnx.save(made, path)
    makers = {name: node.name for node in named.graph.node for name in node.output}
    return Ready(path, made, computed_by(named, path), makers)


def _give_own_biases(graph: onnx.GraphProto) -> None:
    """Give each node a bias of its own, since every bias has the scales of its node's operands.

    The quantiser would do so itself, under names that the graph may have: "b1" and a 2 are "b12".
    """
    weights = {one.name: one for one in graph.initializer}
    seen = set[str]()
    for node in graph.node:
        bias = node.input[2] if len(node.input) > 2 else ""
        if bias in weights and bias in seen:
            node.input[2] = f"{bias}:{node.name}"
            graph.initializer.add().CopyFrom(weights[bias])
            graph.initializer[-1].name = node.input[2]
        seen.add(bias)


def _in_opset(proto: ModelProto) -> ModelProto:
    """The model in an opset in which scales have axes."""
    opset = max((one.version for one in proto.opset_import if not one.domain), default=OPSET)
    if opset >= OPSET:
        return proto
    try:
        return version_converter.convert_version(proto, OPSET)
    except Exception as error:
        what = f"it is of opset {opset}, and cannot be raised to {OPSET}: "
        hint = f"export it again, of opset {OPSET} or later"
        raise ModelError(what + " ".join(str(error).split())[:200], hint) from error


def _matching(layer: str, known: Collection[str]) -> list[str]:
    """The layers with a name or that match a pattern; UsageError if there is none."""
    found = [layer] if layer in known else [one for one in known if fnmatchcase(one, layer)]
    if not found:
        raise _no_layer(layer, known)
    return found


def _no_layer(layer: str, known: Iterable[str]) -> UsageError:
    close = difflib.get_close_matches(layer, known, n=_CLOSE, cutoff=0.3)
    guess = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    hint = (
        f"{guess}A layer is a node of the model, by its name or a pattern of names, such as 'head*'"
    )
    return UsageError(f"--keep-float: there is no layer {layer!r}", hint)
