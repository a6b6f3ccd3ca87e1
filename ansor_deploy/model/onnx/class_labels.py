"""Outputs of classifiers that are maps and text, changed to tensors of numbers.

A ZipMap makes a map of each row, from the labels of columns to their numbers: the output becomes
the rows themselves. Text labels become their places in a list of labels. The lists are kept beside
the model for its manifest, and are written into a model that is saved again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress

import msgspec
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import make_attribute, make_opsetid, make_tensor

from .label_encoders import reads_text, texts_of, with_places
from .skeleton import attribute, uses

Labels = tuple[int | str, ...]
_KEPT = "ansor_deploy.labels"
_STANDARD = 18  # the version of ONNX's own operators where a model with maps has none of them
_CLASSIFIERS = {  # with the attribute for integer labels
    "LinearClassifier": "classlabels_ints",
    "SVMClassifier": "classlabels_ints",
    "TreeEnsembleClassifier": "classlabels_int64s",
}
_MOVING = (  # they move elements of the first input to places that the other inputs give
    "ArrayFeatureExtractor", "Flatten", "Gather", "Identity", "Reshape", "Squeeze", "Transpose",
    "Unsqueeze",
)  # fmt: skip


def say_in_numbers(proto: ModelProto) -> dict[str, Labels]:
    """Change outputs that are maps or text to numbers, in place; returns their meanings.

    For each output: if it has rows, the label of each column; if it has labels, the text of each
    number. Maps and text that nodes read, or that come from elsewhere, stay as they are.
    """
    maps = _without_maps(proto.graph)
    if maps and all(entry.domain not in ("", "ai.onnx") for entry in proto.opset_import):
        proto.opset_import.append(make_opsetid("", _STANDARD))
    return {**_kept(proto), **maps, **_without_text(proto.graph)}


def keep_labels(proto: ModelProto, labels: Mapping[str, Labels]) -> None:
    """Write labels into a model that already has numbers, where `say_in_numbers` finds them."""
    if labels:
        entry = proto.metadata_props.add()
        entry.key, entry.value = _KEPT, json.dumps(labels)


def _kept(proto: ModelProto) -> dict[str, Labels]:
    outputs = {value.name for value in proto.graph.output}
    for entry in proto.metadata_props:
        if entry.key == _KEPT:
            with suppress(msgspec.MsgspecError):
                found = msgspec.json.decode(entry.value, type=dict[str, Labels])
                return {name: one for name, one in found.items() if name in outputs}
    return {}


def _without_maps(graph: GraphProto) -> dict[str, Labels]:
    read = {name for node in graph.node for name in uses(node)}
    outputs = {value.name: value for value in graph.output if value.name not in read}
    found: dict[str, Labels] = {}
    for node in graph.node:
        if node.op_type == "ZipMap" and node.output[0] in outputs:
            found[node.output[0]] = _texts(node) or tuple(attribute(node, "classlabels_int64s", ()))
            node.op_type, node.domain = "Identity", ""
            del node.attribute[:]
            output = outputs[node.output[0]]
            _retype(output, _element(output) or TensorProto.FLOAT)
    return found


def _element(maps: ValueInfoProto) -> int:
    """The type of the numbers in a list of maps; 0 if it does not say."""
    return int(maps.type.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type)


def _retype(value: ValueInfoProto, element: int) -> None:
    value.type.Clear()
    value.type.tensor_type.elem_type = element


def _texts(node: NodeProto) -> tuple[str, ...]:
    """The text labels of a node's classes."""
    return tuple(text.decode() for text in attribute(node, "classlabels_strings", ()))


def _without_text(graph: GraphProto) -> dict[str, Labels]:
    """Replace text from classifiers, encoders and weights by places, if it is only moved."""
    weights = [one for one in graph.initializer if one.data_type == TensorProto.STRING]
    texts = {one.name: tuple(dict.fromkeys(_strings(one))) for one in weights}
    for node in graph.node:
        if node.op_type in _CLASSIFIERS and (labels := _texts(node)):
            texts[node.output[0]] = labels
        elif node.op_type in _MOVING and node.input[0] in texts:
            texts[node.output[0]] = texts[node.input[0]]
        elif node.op_type == "LabelEncoder" and (labels := texts_of(node)):
            texts[node.output[0]] = labels
    outputs = [value for value in graph.output if value.name in texts]
    if not texts or any(_reads(node, texts) for node in graph.node):
        return {}
    _write_places(graph, weights, texts)
    for value in outputs:
        _retype(value, TensorProto.INT64)
    return {value.name: texts[value.name] for value in outputs}


def _strings(tensor: TensorProto) -> list[str]:
    return [text.decode() for text in tensor.string_data]


def _reads(node: NodeProto, texts: Collection[str]) -> bool:
    """Whether a node reads text other than to move it."""
    moved = {node.input[0]} if node.op_type in _MOVING or reads_text(node) else set()
    return not (uses(node) - moved).isdisjoint(texts)


def _write_places(
    graph: GraphProto, weights: list[TensorProto], texts: Mapping[str, tuple[str, ...]]
) -> None:
    """Replace text by its places, in weights and in attributes of nodes."""
    for one in weights:
        places = [texts[one.name].index(text) for text in _strings(one)]
        one.CopyFrom(make_tensor(one.name, TensorProto.INT64, one.dims, places))
    for node in graph.node:
        if node.op_type in _CLASSIFIERS and (labels := _texts(node)):
            kept = [entry for entry in node.attribute if entry.name != "classlabels_strings"]
            places = make_attribute(_CLASSIFIERS[node.op_type], list(range(len(labels))))
            del node.attribute[:]
            node.attribute.extend([*kept, places])
        elif node.op_type == "LabelEncoder":
            with_places(node, texts)
    said = [value for value in graph.value_info if value.name not in texts]
    del graph.value_info[:]
    graph.value_info.extend(said)
