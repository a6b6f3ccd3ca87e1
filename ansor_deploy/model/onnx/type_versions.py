"""The version of an operator from which it takes a type that the model's version does not."""

from __future__ import annotations

import re

import onnx

# ONNX's message for a type that is refused, behind the node's name.
_REFUSED = re.compile(
    r"\((?:op_type:)?(?P<operator>\w+)\): .*typestr: (?P<of>\w+), .*type: tensor\((?P<kind>\w+)\)"
)


def newer(fault: str, opset: int) -> str:
    """What to do about a refused type of a node's input; "" if the fault is of another kind.

    opset: the version that the model imports.
    """
    if "inconsistent type" in fault:
        return "Whatever its shapes are: export the model again, in float32."
    if not (said := _REFUSED.search(fault)):
        return ""
    operator, kind = said["operator"], said["kind"]
    for schema in _versions(operator):
        if schema.since_version > opset and _takes(schema, said["of"], f"tensor({kind})"):
            since = schema.since_version
            return (
                f"{operator} takes {kind} from opset {since} on, and the model has opset {opset}: "
                f"export it with opset_version={since}, or in float32."
            )
    return f"No version of {operator} takes {kind}: export the model in float32."


def _versions(operator: str) -> list[onnx.defs.OpSchema]:
    """All versions of an operator, the oldest first."""
    every = onnx.defs.get_all_schemas_with_history()
    found = [one for one in every if one.name == operator and one.domain == ""]
    return sorted(found, key=lambda one: one.since_version)


def _takes(schema: onnx.defs.OpSchema, of: str, kind: str) -> bool:
    """Whether a type is allowed for a type parameter of an operator."""
    allowed = (one.allowed_type_strs for one in schema.type_constraints if one.type_param_str == of)
    return any(kind in each for each in allowed)
