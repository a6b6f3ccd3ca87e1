"""Read an ONNX file: everything that can be wrong with it is found here, and named."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, NodeProto

from ...errors import ModelError, blaming
from ...system.known_digest import signs_of
from ...system.regular_file import open_regular, read_regular
from .bounds import check_graph
from .class_labels import Labels, say_in_numbers
from .drawn import draw_by_seed
from .file_digest import changed, digest, unreadable
from .functions import make_inlinable
from .lenient import as_onnx_says
from .order import sort_model
from .skeleton import attribute, domain_of, name_of, nodes, skeleton, tensors
from .tensor_data import check_external, check_size, external_file, is_external, load_external
from .text import check_text

_PROTOBUF_LIMIT = 2**31 - 1
_POINTER = b"version https://git-lfs.github.com/spec/"  # a file that Git LFS has not fetched
_AGAIN = "Export or download the model again."  # for a file that is damaged
_OTHERS = (  # (what a file is instead, what to do), a place in it, and the bytes there
    (("a zip archive, as PyTorch saves them", "Export it: torch.onnx.export."), 0, b"PK\3\4"),
    (("a library or a program", "Name the model that it was built of."), 0, b"\x7fELF"),
    (("an HDF5 file, as Keras saves them", "Convert it: tf2onnx."), 0, b"\x89HDF"),
    (("a model of TensorFlow Lite", "Convert it: tf2onnx --tflite."), 4, b"TFL3"),
)
_UNKNOWN = "No Op registered"  # begins what ONNX says of an operator that it does not define
_LEFT = (
    "The exporter left this operator of its framework in the graph: replace it in the model, or "
    "export by a newer exporter, or for a later opset."
)
_OTHERWISE = "The file is whole: export the model by a newer exporter, or for another opset."
# ONNX Runtime accepts these as ONNX's own operators, in any opset.
_OF_ONNX_RUNTIME = ("LayerNormalization", "SimplifiedLayerNormalization")


@dataclass(frozen=True)
class OnnxModel:
    """A model that was read and found well-formed.

    proto: with all tensor data inside, and with numbers instead of outputs that are maps or text.
    digest: SHA-256 over the file and `external`. external: the data files that it names, each once,
    sorted. labels: the meanings of these numbers, by output.
    """

    path: Path
    proto: ModelProto
    digest: str
    external: tuple[Path, ...] = ()
    labels: Mapping[str, Labels] = field(default_factory=dict)

    def __repr__(self) -> str:
        nodes = len(self.proto.graph.node)
        return f"OnnxModel({self.path}, {nodes} nodes, {self.digest[:12]})"


def load(path: Path) -> OnnxModel:
    """Read and check an ONNX file and the external data that it names; its nodes are sorted.

    Raises:
        ModelError: missing, unreadable, damaged, incomplete or not valid ONNX; a tensor's
            data file missing, too short, or outside the model's folder.
    """
    with blaming(path):
        was = {path: _signs(path)}
        proto = _parse(path)
        check_graph(proto)
        check_text(proto)
        as_onnx_says(proto)
        _check_versions(proto)
        _check_tensor_names(proto)
        sort_model(proto)
        external = _fetch(path, proto, was)
        _type_outputs(proto)
        _check(proto)
        make_inlinable(proto)
        labels = say_in_numbers(proto)
        draw_by_seed(proto)
        _check_tensors(proto)
        found = digest(path, external)
        if any(_signs(file) != seen for file, seen in was.items()):
            raise changed("read")
    return OnnxModel(path, proto, found, external, labels)


def _signs(file: Path) -> list[str]:
    try:
        return signs_of(file)
    except OSError as error:
        raise unreadable(file, error) from error


def _parse(path: Path) -> ModelProto:
    try:
        size = path.stat().st_size
        if size > _PROTOBUF_LIMIT:
            raise ModelError(
                f"{size} bytes, more than the 2 GiB a protobuf file can hold",
                "Save the model with external data (onnx.save, save_as_external_data=True).",
            )
        _check_fetched(path, "the file")
        data = read_regular(path, _PROTOBUF_LIMIT)
    except OSError as error:
        raise unreadable(path, error) from error
    if not data:
        raise ModelError("the file is empty", _AGAIN)
    try:
        return ModelProto.FromString(data)
    except DecodeError as error:
        kinds = (said for said, at, sign in _OTHERS if data[at : at + len(sign)] == sign)
        raise ModelError(*next(kinds, ("not an ONNX file, or cut short", _AGAIN))) from error


def _fetch(path: Path, proto: ModelProto, was: dict[Path, list[str]]) -> tuple[Path, ...]:
    """Load external data; returns its files. was: gets the signs of each file before it is read."""
    named = [(t, external_file(t, path)) for t in tensors(proto.graph) if is_external(t)]
    files = {file for _, file in named}
    was.update((file, _signs(file)) for file in files)
    for file in files:
        _check_fetched(file, f"its external data file {file.name}")
    check_external((tensor for tensor, _ in named), files)
    for tensor, file in named:
        load_external(tensor, file)
    for tensor in tensors(proto.graph):
        check_size(tensor)
    return tuple(sorted(files))


def _check_versions(proto: ModelProto) -> None:
    known = onnx.defs.onnx_opset_version()
    for opset in proto.opset_import:
        if opset.domain in ("", "ai.onnx") and opset.version > known:
            raise ModelError(
                f"opset {opset.version}, but the onnx package here knows up to {known}",
                f"Export the model with opset {known} or lower, or upgrade onnx.",
            )
    if proto.ir_version > onnx.IR_VERSION:
        raise ModelError(
            f"IR version {proto.ir_version}, but the onnx package here knows up to "
            f"{onnx.IR_VERSION}",
            f"Export the model with an IR version of {onnx.IR_VERSION} or lower, or upgrade onnx.",
        )


def _check_tensor_names(proto: ModelProto) -> None:
    names = Counter(tensor.name for tensor in proto.graph.initializer)
    if twice := sorted(name for name, count in names.items() if count > 1):
        raise ModelError(f"more than one initializer is named '{twice[0]}'", _OTHERWISE)


def _type_outputs(proto: ModelProto) -> None:
    """Give types to outputs without one in the file, such as intermediate tensors made visible."""
    bare = [value for value in proto.graph.output if not value.HasField("type")]
    if not bare:
        return
    inferred = onnx.shape_inference.infer_shapes(skeleton(proto)).graph
    types = {value.name: value.type for value in (*inferred.value_info, *inferred.output)}
    for value in bare:
        if not types[value.name].WhichOneof("value"):
            hint = "Give it one: onnx.helper.make_tensor_value_info."
            raise ModelError(f"output '{value.name}' has no type, and none is known", hint)
        value.type.CopyFrom(types[value.name])


def _check_tensors(proto: ModelProto) -> None:
    """ModelError if an input or output of the model is a sequence, a map or an optional."""
    values = (("input", proto.graph.input), ("output", proto.graph.output))
    named = [(what, value) for what, several in values for value in several]
    for what, value in named:
        if (kind := value.type.WhichOneof("value")) != "tensor_type":
            kind = (kind or "value").removesuffix("_type").replace("_", " ")
            hint = "Only models of tensors can be compiled: stack or unpack it before you export."
            article = "an" if kind[0] in "aeiou" else "a"
            raise ModelError(f"{what} '{value.name}' is {article} {kind}, not a tensor", hint)


def _check(proto: ModelProto) -> None:
    """ModelError unless the model is well-formed by ONNX's rules and has something to compile."""
    if not proto.graph.node:
        same = "Its outputs are its inputs or weights: use these as they are."
        hint = same if proto.graph.output else _AGAIN
        raise ModelError("the graph has no nodes, so there is nothing to compile", hint)
    if not proto.graph.output:
        raise ModelError("the graph has no outputs", "Mark outputs when exporting.")
    sparse = [tensor.values.name for tensor in proto.graph.sparse_initializer]
    sparse += [name_of(node) for node in nodes(proto.graph) if attribute(node, "sparse_value")]
    if sparse:
        raise ModelError(f"weight '{sparse[0]}' is sparse", "Export it as a dense tensor.")
    _check_reads(proto)
    try:
        onnx.checker.check_model(_checkable(proto))
    except (onnx.checker.ValidationError, ValueError) as error:
        reason = str(error).split("\n\n==> Context")[0]  # the context only repeats the node
        hint = _LEFT if _UNKNOWN in reason else _OTHERWISE
        raise ModelError(f"not valid ONNX: {' '.join(reason.split())}", hint) from error


def _check_reads(proto: ModelProto) -> None:
    """ModelError if a node reads a missing tensor; the checker would call the nodes unsorted."""
    graph = proto.graph
    known = {value.name for value in (*graph.input, *graph.initializer)}
    for node in graph.node:
        if missing := next((name for name in node.input if name and name not in known), None):
            what = "which is no input of the model, no weight, and what no node makes"
            hint = "Export the model with its weights."
            raise ModelError(f"node '{name_of(node)}' reads '{missing}', {what}", hint)
        known.update(node.output)


def _checkable(proto: ModelProto) -> ModelProto:
    """The model for ONNX's checker: without weights, and without what the checker rejects.

    The checker accepts any node of a foreign domain. It wants inputs and outputs to have shapes,
    which ONNX Runtime does not need.
    """
    bare = skeleton(proto)
    for value in (*bare.graph.input, *bare.graph.output):
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.shape.SetInParent()
    opset = max((o.version for o in bare.opset_import if o.domain in ("", "ai.onnx")), default=1)
    foreign = [node for node in nodes(bare.graph) if _is_foreign(node, opset)]
    for node in foreign:
        node.domain = "com.microsoft"
    if foreign and all(entry.domain != "com.microsoft" for entry in bare.opset_import):
        bare.opset_import.add(domain="com.microsoft", version=1)
    return bare


def _is_foreign(node: NodeProto, opset: int) -> bool:
    """Whether a node claims to be ONNX's own operator but is ONNX Runtime's."""
    named = node.op_type in _OF_ONNX_RUNTIME and not domain_of(node)
    return named and not onnx.defs.has(node.op_type, opset)


def _check_fetched(path: Path, what: str) -> None:
    """ModelError if a file is a pointer that Git LFS has not replaced by its content.

    what: the name of the file in the message.
    """
    try:
        with open_regular(path) as file:
            begin = file.read(len(_POINTER))
    except OSError as error:
        raise unreadable(path, error) from error
    if begin == _POINTER:
        hint = "Fetch its content: git lfs pull (Git LFS may have to be installed first)."
        raise ModelError(f"{what} is a Git LFS pointer, a text in its place", hint)
