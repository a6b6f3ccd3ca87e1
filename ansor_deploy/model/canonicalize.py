"""ONNX to ONNX: rewrite a graph so that it imports as the fewest and largest tasks."""

from collections.abc import Callable

from onnx import ModelProto, NodeProto, helper, inliner

from ..errors import ModelError
from .counted.skews import skew_rows
from .counted.walk import bound_sizes
from .dequantised.halves import without_halves
from .dequantised.integers import integers
from .dequantised.operators import as_conversions
from .graph.added_convolutions import add_up_convolutions
from .graph.affine import fold_affine
from .graph.cleanup import (
    drop_dead,
    drop_identity,
    drop_round_trips,
    sort_nodes,
    split_variadic,
)
from .graph.clips import scalar_clips
from .graph.concatenated import split_at_parts
from .graph.fold import check_unfolded, fold_constants
from .graph.foreign import remember_foreign
from .graph.gates import multiply_gates
from .graph.graph import UNTYPED, Graph
from .graph.long_products import part_long_products
from .graph.merged_axes import split_merged_axes
from .graph.pads import pad_in_windows
from .graph.scaled_keys import scale_queries
from .graph.shared_heads import share_heads
from .graph.stacks import join_stacks
from .graph.turned_caches import turn_caches
from .graph.turned_products import turn_products
from .onnx.skeleton import attribute, nodes, with_initializers
from .operators.emitter import UnknownShapeError
from .operators.listed_rows import stack_listed_rows
from .operators.pasted import multiply_pasted
from .operators.repeats import gather_repeats
from .operators.repetition import write_out_loops
from .operators.rewriting import rewrite_nodes
from .operators.split_rows import gather_split_rows
from .operators.support import refuse

# The version of the standard operators for a model that imports none until we rewrite it.
_STANDARD = 18
# The first version of the standard operators that has Where.
_OF_WHERE = 9
# Operators that this version defines otherwise than 7 and 8 do.
_OTHERWISE = ("Scan", "Upsample")
_TIDY = (drop_identity, drop_dead, sort_nodes)


def _rewrite(graph: Graph) -> None:
    """Rewrite nodes, again while sizes become static: some are known only after rewriting.

    A node whose shapes are unknown waits: the steps of a Loop get theirs once they are nodes.
    """
    while True:
        unknown = _left_unknown(graph)
        if not bound_sizes(graph):
            if unknown:
                raise _cause(graph, unknown)
            return


def _left_unknown(graph: Graph) -> UnknownShapeError | None:
    """Rewrite nodes; the error of the first node that needs a shape which is not known yet."""
    try:
        rewrite_nodes(graph)
    except UnknownShapeError as error:
        return error
    return None


def _cause(graph: Graph, unknown: UnknownShapeError) -> ModelError:
    """Why a shape is not known: the first node that ONNX does not take, if there is one."""
    try:
        graph.infer(strict=True)
    except ModelError as error:
        return unknown if UNTYPED in error.text else error
    return unknown


PASSES: tuple[Callable[[Graph], object], ...] = (
    sort_nodes,
    drop_dead,
    fold_constants,
    gather_repeats,
    multiply_pasted,
    stack_listed_rows,
    write_out_loops,
    gather_split_rows,
    bound_sizes,
    without_halves,
    as_conversions,
    integers,
    _rewrite,
    remember_foreign,
    join_stacks,
    split_variadic,
    scalar_clips,
    multiply_gates,
    *_TIDY,
    split_merged_axes,
    skew_rows,
    turn_products,
    drop_round_trips,
    drop_identity,
    share_heads,
    scale_queries,
    part_long_products,
    drop_dead,
    turn_caches,
    pad_in_windows,
    split_at_parts,
    fold_affine,
    add_up_convolutions,
    *_TIDY,
)


def canonicalize(proto: ModelProto) -> ModelProto:
    """The model after all passes, for inference: equal results, and equal bytes for equal bytes.

    It copies the model's weights. Raises what `canonical_graph` does.
    """
    return canonical_graph(proto).to_proto()


def canonical_graph(
    proto: ModelProto, opened: Callable[[Graph], object] = lambda graph: None
) -> Graph:
    """The model's graph after all passes; weights that are left as they were are the model's own.

    Give it static input shapes (`bind_shapes`) for all of it to work. The model given stays
    as it is. Inputs and outputs keep their names, types and order.
    opened: leaves some sizes open that a run is to give (`counted/`).

    Raises:
        ModelError: a cycle, shapes that contradict each other, constants that do not fit, or
            operators that cannot be compiled.
    """
    if proto.functions:
        proto = inliner.inline_local_functions(proto)
    graph = Graph.of(_as_of_nine(_with_standard(proto)))
    opened(graph)
    for change in PASSES:
        change(graph)
    graph.infer()
    if not graph.output_names <= graph.shapes.keys():
        graph.infer(strict=True)  # says why, unless the shapes depend on the data
    refuse(graph)
    check_unfolded(graph)
    return graph


def _as_of_nine(proto: ModelProto) -> ModelProto:
    """A model of opset 7 or 8 as one of 9, since nodes are rewritten to operators such as Where.

    It is returned unchanged if it has an operator that version 9 defines otherwise.
    """
    standard = [entry for entry in proto.opset_import if entry.domain in ("", "ai.onnx")]
    old = [entry.version for entry in standard if 7 <= entry.version < _OF_WHERE]
    if not old or any(node.op_type in _OTHERWISE for node in nodes(proto.graph)):
        return proto
    raised = with_initializers(proto, proto.graph.initializer)
    for entry in raised.opset_import:
        if entry.domain in ("", "ai.onnx"):
            entry.version = _OF_WHERE
    for node in raised.graph.node:
        _drop_spatial(node)
    return raised


def _drop_spatial(node: NodeProto) -> None:
    """Remove an attribute of BatchNormalization that opset 9 lacks, if it is the default."""
    if node.op_type == "BatchNormalization" and attribute(node, "spatial", 1) == 1:
        kept = [one for one in node.attribute if one.name != "spatial"]
        del node.attribute[:]
        node.attribute.extend(kept)


def _with_standard(proto: ModelProto) -> ModelProto:
    """The model, with a version of the standard operators, to which some nodes are rewritten."""
    if any(entry.domain in ("", "ai.onnx") for entry in proto.opset_import):
        return proto
    extended = ModelProto()
    extended.CopyFrom(proto)
    extended.opset_import.append(helper.make_opsetid("", _STANDARD))
    return extended
