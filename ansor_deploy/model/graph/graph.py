"""An ONNX graph as the passes change it: nodes, constants, and the known shapes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper
from onnx.helper import make_opsetid, make_tensor_value_info

from ...errors import ModelError
from ...runtime.context import Context
from ..onnx.bind import model_inputs, set_shape
from ..onnx.bounds import check_rank, check_shape
from ..onnx.skeleton import divide, nested_names, tensors, uses, with_initializers
from ..onnx.type_versions import newer
from ..ranges import Range
from .answers import Answers
from .constant_room import Room
from .inference_guards import GUARD, SCALED, guarded, keyed, none, rounded_sizes, sized

Shape = tuple[int, ...]
FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
BYTES = (TensorProto.UINT8, TensorProto.INT8)
GROWTH = 16 << 20  # bytes that an operator may make from fewer bytes
# The domain of our own operators, which no file has.
OWN = "ansor"
CONTRADICTION = "shapes or types contradict each other: "
UNTYPED = "expected to have type but instead is null"  # ONNX says so after an unknown operator
# ONNX writes its faults like this, one after the other.
_FAULT = re.compile(
    r"\(op_type:(?P<operator>[^,)]+), node name: (?P<node>.*?)\): (\[\w+\] )?"
    r"(?P<fault>.*?)(?= \(op_type:|$)"
)


@dataclass(frozen=True)
class Length:
    """How much of a result counts along an axis. name: the result that holds this number."""

    output: str
    axis: int
    name: str


@dataclass
class Graph:
    """Working state of the passes, which change it in place.

    nodes: in topological order, except for those that a pass appended. constants: by name; no node
    makes them. room: for those that are computed. growth: how many bytes are computed from fewer
    bytes, at most. is_sketch: whether only shapes are wanted, so that nothing larger than `growth`
    is computed. dtypes, shapes: inferred ONNX element types and static shapes. aliases: for
    names that passes made, the name of a tensor that holds the same, or that it stands for.
    foreign: the tensors that `foreign.py` notes. lengths: of results of which a run decides how
    much counts; they are further results of the graph. context: of a model with caches that a
    library keeps. rooms: the final shapes of inputs that are still open. answers: of what was
    folded, also in other graphs of the same model with the same limits.
    """

    proto: ModelProto
    nodes: list[NodeProto]
    constants: dict[str, TensorProto]
    room: Room
    growth: int = GROWTH
    is_sketch: bool = False
    dtypes: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    foreign: list[ValueInfoProto] = field(default_factory=list, repr=False)
    lengths: list[Length] = field(default_factory=list)
    context: Context | None = None
    ranges: tuple[Range, ...] = ()
    rooms: dict[str, Shape] = field(default_factory=dict)
    answers: Answers = field(default_factory=Answers, repr=False)
    _declared: dict[str, ValueInfoProto] = field(default_factory=dict, repr=False)
    _rounded: dict[str, Shape] = field(default_factory=dict, repr=False)
    _at: int = field(default=0, repr=False)  # where the last node was replaced
    _counters: dict[str, count[int]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, proto: ModelProto) -> Graph:
        """The graph of a model; the model itself is not changed."""
        nodes = [deepcopy(node) for node in proto.graph.node]
        room = Room(tensors(proto.graph))
        return cls(proto, nodes, {t.name: t for t in proto.graph.initializer}, room)

    @property
    def opset(self) -> int:
        """Version of the standard operators that the model uses."""
        standard = (o.version for o in self.proto.opset_import if o.domain in ("", "ai.onnx"))
        return next(standard, 1)

    @property
    def output_names(self) -> set[str]:
        """Names of the model's outputs, and of its lengths."""
        given = {value.name for value in self.proto.graph.output}
        return given.union(length.name for length in self.lengths)

    def value(self, name: str) -> np.ndarray | None:
        """The value of a constant; None if the name is not a constant's."""
        tensor = self.constants.get(name)
        return None if tensor is None else numpy_helper.to_array(tensor)

    def add_constant(self, array: np.ndarray, like: str) -> str:
        """Keep an array as a constant, and return its name, which is derived from `like`."""
        name = self.fresh(like)
        self.keep(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def keep(self, tensor: TensorProto) -> None:
        """Add a computed constant; ModelError if there is no room for it."""
        self.room.take(tensor.name, len(tensor.raw_data))
        self.note(tensor)

    def note(self, tensor: TensorProto) -> None:
        """Add a constant that takes no more room, with its type and shape."""
        self.constants[tensor.name] = tensor
        self.dtypes[tensor.name] = tensor.data_type
        self.shapes[tensor.name] = tuple(tensor.dims)

    def fresh(self, like: str) -> str:
        """A name that no tensor has or had; it is the same for the same graph."""
        counter = self._counters.setdefault(like, count(1))  # a name that is taken stays taken
        name = next(n for at in counter if (n := f"{like}_{at}") not in self._taken)
        self._taken.add(name)
        return name

    def name_like(self, name: str) -> str:
        """This name if it is free, else a fresh one like it."""
        if name in self._taken:
            return self.fresh(name)
        self._taken.add(name)
        return name

    @cached_property
    def _taken(self) -> set[str]:
        """Every tensor name in use, also inside nested graphs, and every name made since."""
        found = {value.name for value in (*self.proto.graph.input, *self.proto.graph.output)}
        return found.union(self.constants, *((*node.output, *uses(node)) for node in self.nodes))

    def producers(self) -> dict[str, NodeProto]:
        """The node that makes each tensor."""
        return {name: node for node in self.nodes for name in node.output if name}

    def consumers(self) -> dict[str, list[NodeProto]]:
        """The nodes that read each tensor, once per node, nested graphs included."""
        readers: dict[str, list[NodeProto]] = defaultdict(list)
        for node in self.nodes:
            for name in sorted(uses(node)):
                readers[name].append(node)
        return readers

    def captured(self) -> set[str]:
        """Names that nested graphs read, where a rename would not reach them."""
        return {name for node in self.nodes for name in nested_names(node)}

    def rename_uses(self, new: Mapping[str, str]) -> None:
        """Let every node read the new names in the place of the old ones."""
        for node in self.nodes:
            if not new.keys().isdisjoint(node.input):
                node.input[:] = [new.get(name, name) for name in node.input]

    def replace(self, node: NodeProto, new: list[NodeProto]) -> None:
        """Replace a node by other nodes, or by none."""
        # Passes go from the first node to the last, so a search from the start each time is slow.
        begin = min(self._at, len(self.nodes))
        places = chain(range(begin, len(self.nodes)), range(begin))
        at = next(i for i in places if self.nodes[i] is node)
        self.nodes[at : at + 1] = new
        self._at = at

    def declare(self, name: str, kind: int, shape: Shape | None) -> None:
        """Declare the type and shape of a tensor whose operator ONNX does not know.

        shape: None if it is not known yet.
        """
        self._declared[name] = make_tensor_value_info(name, kind, shape)
        self.dtypes[name] = kind
        if shape is not None:
            self.shapes[name] = shape

    def infer(self, *, strict: bool = False, check_types: bool = False) -> None:
        """Infer element types and static shapes of as many tensors as possible.

        Raises:
            ModelError: the shapes contradict each other, which is found for sure only if strict;
                or a node does not take its types, if they are checked.
        """
        if any(node.op_type in SCALED for node in self.nodes):
            self._infer_scaled(check_types=check_types)
            if not strict:
                return
        self._infer(strict=strict, check_types=check_types)

    def _infer_scaled(self, *, check_types: bool) -> None:
        """Infer until each result of scales has its size: later ones follow from earlier ones."""
        while True:
            self._infer(strict=False, check_types=check_types)
            rounded = rounded_sizes(self.nodes, self.value, self.shapes)
            if rounded == self._rounded:
                return
            self._rounded = rounded

    def _infer(self, *, strict: bool, check_types: bool) -> None:
        try:
            # No data propagation: it computes values of any size, and folding does it better.
            inferred = onnx.shape_inference.infer_shapes(
                self._bare(), check_type=check_types, strict_mode=strict
            )
        except (onnx.shape_inference.InferenceError, ValueError) as error:
            fault = _first(str(error))
            other = "Check the shapes given with --input-shape, or export the model again."
            hint = newer(fault, self.opset) or other
            raise ModelError(f"{CONTRADICTION}{fault}", hint) from error
        self.dtypes = {name: tensor.data_type for name, tensor in self.constants.items()}
        self.shapes = {name: tuple(tensor.dims) for name, tensor in self.constants.items()}
        found = inferred.graph
        for value in (*found.input, *found.value_info, *found.output):
            if (name := value.name).startswith(GUARD):
                continue
            tensor = value.type.tensor_type
            self.dtypes[name] = tensor.elem_type
            if not tensor.HasField("shape"):
                continue
            dims = tensor.shape.dim
            sizes = [dim.dim_value for dim in dims if dim.HasField("dim_value")]
            if len(sizes) == len(dims):
                self.shapes[name] = tuple(sizes)
        first = {shape: name for name, shape in reversed(self.shapes.items())}
        for shape, name in reversed(first.items()):  # each once, in the order of the tensors
            check_shape(name, shape)
        for node in self.nodes:
            check_rank(node, self.shapes)

    def to_proto(self) -> ModelProto:
        """The graph as a model; its outputs have the inferred shapes."""
        model = self.structure()
        for tensor in self.constants.values():
            model.graph.initializer.add().CopyFrom(tensor)
        return model

    def structure(self) -> ModelProto:
        """The model of `to_proto` without its constants."""
        model = self._model([])
        for value in model.graph.output:
            if value.name in self.shapes:
                set_shape(value, self.shapes[value.name])
        return model

    def _bare(self) -> ModelProto:
        """The model without its weights, and without the shapes that the file gives its outputs."""
        small, large = divide(self.constants.values())
        model = self._model(small)
        model.graph.input.extend(large)
        every = [*sized(self.nodes, self._rounded)] if self._rounded else self.nodes
        if len(nodes := guarded(every, self.opset, self.value)) > len(self.nodes):
            del model.graph.node[:]
            model.graph.node.extend(nodes)
            model.graph.initializer.append(none())
        for value in model.graph.output:
            value.type.tensor_type.ClearField("shape")
        known = {one.name for one in (*model.graph.input, *model.graph.value_info)}
        model.graph.value_info.extend(keyed(self.nodes, known | self.constants.keys()))
        return model

    def _model(self, initializers: list[TensorProto]) -> ModelProto:
        leave = {"node", "value_info", "input", "doc_string", "metadata_props"}
        model = with_initializers(self.proto, initializers, leave)
        model.ir_version = max(self.proto.ir_version, 4)  # constants need not be inputs
        model.graph.input.extend(model_inputs(self.proto))
        model.graph.node.extend(self.nodes)
        if any(node.domain == OWN for node in self.nodes):
            model.opset_import.append(make_opsetid(OWN, 1))
        model.graph.value_info.extend(self._declared.values())
        for name in dict.fromkeys(length.name for length in self.lengths):
            model.graph.output.append(make_tensor_value_info(name, TensorProto.INT64, ()))
        return model


def _first(text: str) -> str:
    """The first fault of inference, whose text also lists all that follow from it."""
    text = " ".join(text.split())
    if found := _FAULT.search(text):
        return f"node '{found['node']}' ({found['operator']}): {found['fault']}"
    return text


def is_op(node: NodeProto, *ops: str) -> bool:
    """Whether the node is one of these standard operators."""
    return node.op_type in ops and node.domain in ("", "ai.onnx")


def optional_input(node: NodeProto, index: int) -> str:
    """The name of an input, empty if the node does not have it."""
    return str(node.input[index]) if index < len(node.input) else ""
