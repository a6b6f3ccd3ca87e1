"""Every ONNX operator that can be compiled: `OPERATORS` has an entry each, made without TVM.

`FAMILIES` are files of this folder. At its end, each has a table of its operators with their limits
and, unless TVM's own converter compiles them, the function that does. Nothing else has to know of
them (`operator.py`). `support.py` refuses nodes that are not here or go beyond a limit.
`docs/operators.md` is made from the tables.
"""

from onnx import NodeProto

from ..onnx.skeleton import domain_of
from . import (
    appended,
    arithmetic,
    attention,
    attention_contrib,
    block_products,
    block_quantised,
    casting,
    contractions,
    contrib,
    counted_places,
    coupling,
    data_movement,
    defined,
    deformable,
    elementwise,
    extremes,
    features,
    forerunners,
    found,
    grids,
    group_query,
    indexing,
    integer_products,
    integers,
    linear_models,
    long_sums,
    normalization,
    quantization,
    quantization_contrib,
    recurrent,
    recurrent_bytes,
    regions,
    repacked,
    repetition,
    resize,
    sampled,
    scans,
    signal,
    skewed,
    softmax,
    standard,
    suppression,
    topk,
    tree_ensembles,
    windows,
)
from .operator import Operator

FAMILIES = (
    standard, elementwise, arithmetic, casting, data_movement, indexing, extremes, topk,
    windows, contractions, resize, regions, deformable, signal, long_sums, normalization,
    softmax, attention, scans, recurrent, recurrent_bytes, repetition, defined, contrib,
    sampled, attention_contrib, integers, integer_products, quantization, quantization_contrib,
    block_quantised, block_products, group_query, features, linear_models, tree_ensembles,
    forerunners, found, grids, suppression, appended, coupling, repacked,
    counted_places, skewed,
)  # fmt: skip

OPERATORS: dict[tuple[str, str], Operator] = {  # by domain and name
    (operator.domain, operator.name): operator
    for family in FAMILIES
    for operator in family.OPERATORS
}


def find(node: NodeProto) -> Operator | None:
    """The operator of a node; None if it is not known."""
    return OPERATORS.get((domain_of(node), node.op_type))
