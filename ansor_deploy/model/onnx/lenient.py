"""Change what ONNX Runtime accepts beyond the standard to what the standard says.

Files of old exporters, and files that tools have joined, differ from the standard in these ways and
mean the same.
"""

from onnx import ModelProto

from .skeleton import with_nested

_OF_INPUTS = 3  # the last IR version in which every weight has to be an input
_CONTRIB = "com.microsoft"


def as_onnx_says(proto: ModelProto) -> None:
    """Change a model in place: weights need not be inputs, and ONNX's own domain has one name.

    An import of ONNX Runtime's own operators is added where it is missing: its weight quantisers
    leave it out.
    """
    inputs = {value.name for value in proto.graph.input}
    if any(tensor.name not in inputs for tensor in proto.graph.initializer):
        proto.ir_version = max(proto.ir_version, _OF_INPUTS + 1)
    functions = proto.functions
    opsets = [opset for holder in (proto, *functions) for opset in holder.opset_import]
    nodes = [node for body in (proto.graph, *functions) for node in with_nested(body.node)]
    for named in (*opsets, *nodes):
        if named.domain == "ai.onnx":
            named.domain = ""
    used = {node.domain for node in with_nested(proto.graph.node)}
    if _CONTRIB in used - {opset.domain for opset in proto.opset_import}:
        proto.opset_import.add(domain=_CONTRIB, version=1)
