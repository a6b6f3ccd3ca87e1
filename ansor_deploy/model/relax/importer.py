"""ONNX to Relax: one fused function a task, weights as constants, channels last on CPUs."""

import itertools
import keyword
import warnings
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np
import onnx

from ..._tvm import onnx_frontend, relax, tirx, tvm, tvm_target
from ...errors import ModelError
from ...runtime.interface import Interface, TensorInfo
from ...target import Target
from ..graph.graph import Graph, Length
from ..graph.nodes import Origin
from ..onnx.skeleton import domain_of, name_of, nested, nodes
from ..operators.blame import blamed
from ..operators.front_end import own_converters, tvm_name
from ..operators.indices import IN_BRANCH
from . import concatenation, constant_gathers, few_channels, mirrored, pooling, resizing
from .alike import merged_alike
from .appended import with_appended
from .attention import with_attention
from .blockwise import BlockwiseWeights
from .cut_reasons import with_reasons
from .fusion import with_cuts, without_cuts
from .labels import fused, with_labels
from .layout import channels_last
from .narrow import narrow
from .patterns import with_patterns
from .precision import in_single
from .whole_sums import merged
from .widen import widen

COUNTED = "ansor.counted"  # the attribute of `main` that says how much of its results counts


@dataclass(frozen=True)
class Imported:
    """A model in Relax: `mod["main"]` calls one PrimFunc for each fused group of operators.

    interfaces: the inputs and outputs of each `main`; several where there are several shapes.
    origins: the model's nodes, for each.
    """

    mod: tvm.IRModule
    interfaces: tuple[Interface, ...]
    origins: tuple[Origin, ...]

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """The inputs of the first `main`."""
        return self.interfaces[0].inputs


def import_model(
    graph: Graph, target: Target, step: Callable[[int, int], None] = lambda done, total: None
) -> Imported:
    """Import a canonical, statically shaped graph for a target.

    step: called with the number of passes that are done, and their total. ModelError names the node
    that cannot be imported.
    """
    proto = graph.structure()
    inputs = tuple(tensor_info(value) for value in proto.graph.input)
    names = [value.name for value in proto.graph.output]
    quietly = redirect_stdout(StringIO())
    with own_converters(), tvm_target(target), warnings.catch_warnings(), quietly:
        warnings.simplefilter("ignore")
        origin = Origin(graph.proto, graph.nodes, graph.constants, graph.aliases, names)
        mod = _convert(_for_tvm(proto), graph, origin)
    context, has_lengths = graph.context, bool(graph.lengths or graph.ranges)
    outputs = _outputs(names, graph.lengths, mod["main"].body.body.ty)
    types = {one.data_type for one in (*graph.proto.graph.initializer, *graph.constants.values())}
    blocks = BlockwiseWeights(graph.proto)
    del graph  # the module has its weights now
    with tvm_target(target), tvm.transform.PassContext(opt_level=3):
        passes = _passes(target, types, blocks)
        for done, change in enumerate(passes, start=1):
            with _in_tvm():
                mod = change(mod)
            step(done, len(passes))
    if has_lengths:
        mod["main"] = mod["main"].with_attr(COUNTED, _counts(outputs))
    return Imported(mod, (Interface(inputs, outputs, context),), (origin,))


def _counts(outputs: Sequence[TensorInfo]) -> list[list[int]]:
    """For each result with a length: its number, the axis, and the number of that length."""
    names = [info.name for info in outputs]
    return [
        [at, axis, names.index(name)]
        for at, info in enumerate(outputs)
        for axis, name in info.lengths
    ]


_LEGALIZED = {
    "relax.nn.avg_pool2d": pooling.legalized,
    "relax.nn.conv2d": few_channels.legalized,
    "relax.nn.max_pool2d": pooling.legalized,
    "relax.nn.pad": mirrored.legalized,
    "relax.concat": concatenation.legalized,
    "relax.take": constant_gathers.legalized,
}


def _passes(target: Target, types: Collection[int], blocks: BlockwiseWeights) -> list[Any]:
    """The passes from the front end's operators to one function for each task.

    types: ONNX's types of the constants that the model came with. blocks: its block-quantised
    weights.
    """
    t = relax.transform
    passes = [t.DecomposeOpsForInference(), t.CanonicalizeBindings()]
    lanes = 1 if target.gpu else target.vector_bytes // 4
    if target.kind == "llvm":
        passes += [
            _module_pass(lambda mod: widen(channels_last(in_single(mod), target), target)),
            _module_pass(merged),
        ]
    return [
        *passes,
        t.DeadCodeElimination(),
        relax.backend.DispatchSortScan(),
        t.LegalizeOps({**_LEGALIZED, "relax.image.resize2d": resizing.legalized_in(lanes)}),
        t.AnnotateTIROpPattern(),
        _module_pass(with_patterns),
        t.FoldConstant(),
        _module_pass(with_appended),
        _module_pass(concatenation.with_parts_in_place),
        _module_pass(lambda mod: with_attention(mod, target)),
        _module_pass(with_cuts),
        _module_pass(fused),
        t.FuseTIR(),
        _module_pass(with_reasons),
        _module_pass(without_cuts),
        _module_pass(lambda mod: narrow(mod, types, blocks, target)),
        _module_pass(lambda mod: mod if target.gpu else merged_alike(mod)),
        t.DeadCodeElimination(),
        t.AttachAttrLayoutFreeBuffers(),
        tvm.tirx.transform.prim_func_pass(lambda func, *_: _rooted(func), opt_level=0),
    ]


def _module_pass(change: Callable[[tvm.IRModule], tvm.IRModule]) -> Any:
    return tvm.transform.module_pass(lambda mod, _: change(mod), opt_level=0)


def _rooted(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The program below a root block, which TVM's hand-written ones (sorts, scans) lack.

    Schedules, and the pass that splits off weight packing, expect one.
    """
    realize = func.body
    if not isinstance(realize, tvm.s_tir.SBlockRealize) or realize.block.name_hint == "root":
        return func
    root = tvm.s_tir.SBlock([], [], [], "root", realize)
    return func.with_body(tvm.s_tir.SBlockRealize([], True, root))


def _for_tvm(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model in the front end's terms: every node named, operators named with their domains.

    Inputs are renamed if their name is a keyword of Python, since TVMScript could not have such a
    parameter.
    """
    for node in nodes(proto.graph):
        node.name = name_of(node)
        node.op_type = tvm_name(domain_of(node), node.op_type)
    for branch in (inner for node in proto.graph.node for inner in nested(node)):
        for node in nodes(branch):
            node.attribute.append(onnx.helper.make_attribute(IN_BRANCH, 1))
    _rename_keywords(proto)
    return proto


def _rename_keywords(proto: onnx.ModelProto) -> None:
    taken = {name for node in nodes(proto.graph) for name in (*node.input, *node.output)}
    for old in [value.name for value in proto.graph.input if keyword.iskeyword(value.name)]:
        new = next(name for n in itertools.count() if (name := f"{old}_{n}") not in taken)
        for value in (*proto.graph.input, *proto.graph.output):
            value.name = new if value.name == old else value.name
        for node in nodes(proto.graph):
            node.input[:] = [new if name == old else name for name in node.input]


def _convert(proto: onnx.ModelProto, graph: Graph, origin: Origin) -> tvm.IRModule:
    """The module that the front end makes of a graph's structure, with the graph's constants.

    TVM's `from_onnx` wants the constants in the model, and serialises all of it to check it.
    """
    shapes = {tensor.name: list(tensor.shape) for tensor in map(tensor_info, proto.graph.input)}
    importer = onnx_frontend.ONNXGraphImporter(shapes, "float32")
    for name, tensor in graph.constants.items():
        importer._nodes[name] = relax.const(importer._parse_array(tensor))  # noqa: SLF001
    with _in_tvm():
        mod = importer.from_onnx(proto.graph, graph.opset)
    return with_labels(mod, origin, importer._nodes)  # noqa: SLF001


def _in_tvm() -> AbstractContextManager[None]:
    """Report what TVM refuses, outside any converter, as an error of the model."""
    return blamed(
        "the model cannot be imported",
        "simplify the model (onnxslim model.onnx simple.onnx) or export it with static shapes; "
        "where ONNX Runtime runs it, please report it",
    )


def _outputs(
    names: Sequence[str], lengths: Collection[Length], result: Any
) -> tuple[TensorInfo, ...]:
    """The outputs: names from the graph, shapes from the import, since files often omit them."""
    types = result.fields if isinstance(result, relax.TupleType) else [result]
    of_each = {name: tuple((n.axis, n.name) for n in lengths if n.output == name) for name in names}
    return tuple(_output(name, of_each[name], t) for name, t in zip(names, types, strict=True))


def _output(name: str, lengths: tuple[tuple[int, str], ...], type_: Any) -> TensorInfo:
    extents: list[Any] = list(type_.shape) if isinstance(type_.shape, relax.ShapeExpr) else [None]
    if not all(isinstance(extent, tirx.IntImm) for extent in extents):
        raise ModelError(
            f"the shape of output {name} depends on the input's values",
            "only shapes with a bound can be compiled: cut the graph before the operator that "
            "makes it",
        )
    return TensorInfo(name, tuple(map(int, extents)), str(type_.dtype), lengths)


def tensor_info(value: onnx.ValueInfoProto) -> TensorInfo:
    """The description of an input of static shape."""
    kind = value.type.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    return TensorInfo(value.name, tuple(d.dim_value for d in kind.shape.dim), np.dtype(dtype).name)
