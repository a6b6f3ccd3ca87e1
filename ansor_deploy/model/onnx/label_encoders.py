"""LabelEncoder from or to text: the text is replaced by its place in a list of all texts."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import NodeProto, TensorProto, numpy_helper
from onnx.helper import make_attribute

from .skeleton import attribute

Texts = Mapping[str, tuple[str, ...]]
_WITHOUT = "_Unused"  # ONNX's default value for an unknown key
_NO_PLACE = -1  # for a key that is no text of the input


def texts_of(node: NodeProto) -> tuple[str, ...]:
    """All texts that a LabelEncoder may make, each once; none if it makes numbers."""
    values = _listed(node, "values")
    return () if values is None else tuple(dict.fromkeys([*values, _default(node)]))


def reads_text(node: NodeProto) -> bool:
    """Whether its keys are text."""
    return node.op_type == "LabelEncoder" and _listed(node, "keys") is not None


def with_places(node: NodeProto, texts: Texts) -> None:
    """Change its keys and values to their places in the texts of its input and output."""
    keys, values = _listed(node, "keys"), _listed(node, "values")
    known = texts.get(node.input[0], ())
    if keys is not None:  # a key that never occurs gets no place: it matches nothing
        _replace(node, "keys", [_place(known, key) for key in keys])
    if values is not None:
        made, default = texts[node.output[0]], _default(node)
        _replace(node, "values", [made.index(value) for value in values])
        _replace(node, "default", made.index(default))


def _place(known: tuple[str, ...], key: str) -> int:
    return known.index(key) if key in known else _NO_PLACE


def _listed(node: NodeProto, what: str) -> list[str] | None:
    """Keys or values that are text; None if they are numbers."""
    if given := attribute(node, f"{what}_strings"):
        return [text.decode() for text in given]
    tensor = attribute(node, f"{what}_tensor")
    if tensor is None or tensor.data_type != TensorProto.STRING:
        return None
    return [_text(one) for one in numpy_helper.to_array(tensor).reshape(-1)]


def _default(node: NodeProto) -> str:
    if (tensor := attribute(node, "default_tensor")) is not None:
        return _text(numpy_helper.to_array(tensor).reshape(-1)[0])
    return _text(attribute(node, "default_string", _WITHOUT))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _replace(node: NodeProto, what: str, places: int | list[int]) -> None:
    forms = [f"{what}_{form}" for form in ("strings", "string", "tensor")]
    kept = [one for one in node.attribute if one.name not in forms]
    del node.attribute[:]
    name = f"{what}_int64s" if isinstance(places, list) else f"{what}_int64"
    node.attribute.extend([*kept, make_attribute(name, places)])
