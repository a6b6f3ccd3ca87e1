"""Functions of two tensors of bytes, as ONNX Runtime's operators on bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import NodeProto, helper

from ..operators.emitter import Emitter
from ..operators.quantization_contrib import q_linear_add, q_linear_mul
from .real import Real

_PAIRS: dict[str, Callable[[Emitter], str]] = {"Add": q_linear_add, "Mul": q_linear_mul}


def paired(emit: Emitter, node: NodeProto, reals: Mapping[str, Real], to: Real) -> str | None:
    """The sum or product of two tensors of bytes as integers; None for other nodes."""
    compute = _PAIRS.get(node.op_type)
    given = [reals.get(name) for name in node.input]
    if compute is None or len(given) != 2 or node.domain not in ("", "ai.onnx"):
        return None
    names: list[str] = []
    for one in given:
        if one is None or not (one.is_whole and one.is_bytes):
            return None
        names += [one.data, *one.constants(emit)]
    names += to.constants(emit)
    made = helper.make_node(f"QLinear{node.op_type}", names, [node.output[0]])
    inside = Emitter(emit.graph, made)
    result = compute(inside)
    emit.nodes.extend(inside.nodes)
    return result


def is_pair(node: NodeProto, reals: Mapping[str, Real]) -> bool:
    """Whether `paired` computes this node, for tensors of bytes."""
    known = [reals.get(name) for name in node.input]
    return node.op_type in _PAIRS and all(
        one is not None and one.is_whole and one.is_bytes for one in known
    )
