"""Text in an ONNX file has to be UTF-8; protobuf returns other text as bytes.

Attributes of nodes that ONNX does not define may hold other bytes, as those of TensorFlow's do that
tf2onnx leaves in a graph: such nodes are refused by their names.
"""

from collections.abc import Iterator

from google.protobuf.message import Message
from onnx import ModelProto, NodeProto, defs

from ...errors import ModelError

_AS_BYTES = ("s", "strings", "string_data")  # fields of type bytes in which ONNX stores text
_SHOWN = 60  # the most bytes of a text in a message


def check_text(proto: ModelProto) -> None:
    """ModelError if a name, or any other text of a model, is not UTF-8."""
    for field, text in _bytes(proto):
        if text.decode(errors="replace").encode() != text:
            more = "..." if len(text) > _SHOWN else ""
            fault = f"text is not UTF-8 (in a field '{field}'): {text[:_SHOWN]!r}{more}"
            raise ModelError(fault, "The file is damaged: export or download the model again.")


def _bytes(message: Message) -> Iterator[tuple[str, bytes]]:
    """The texts of a message, and of those inside it, that are bytes, with their fields' names."""
    for field, value in message.ListFields():
        if field.name == "attribute" and _is_foreign(message):
            continue
        alone = isinstance(value, (str, bytes, Message))
        several = (value,) if alone else value
        if field.type == field.TYPE_MESSAGE:
            for inner in several:
                yield from _bytes(inner)
        elif field.type == field.TYPE_STRING or field.name in _AS_BYTES:
            yield from ((field.name, text) for text in several if isinstance(text, bytes))


def _is_foreign(message: Message) -> bool:
    """Whether it is a node that claims to be ONNX's own and is not."""
    if not isinstance(message, NodeProto) or message.domain not in ("", "ai.onnx"):
        return False
    return isinstance(message.op_type, str) and not defs.has(message.op_type)
