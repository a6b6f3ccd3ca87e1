"""Functions of a model, changed until ONNX's inliner writes them out as the standard says.

The inliner leaves out attributes that a function has by default, and leaves calls of a function as
they are if it imports another version of an operator set than the model.
"""

from onnx import ModelProto

from .skeleton import domain_of, with_nested


def make_inlinable(proto: ModelProto) -> None:
    """Change the functions of a model that ONNX's checker accepts, and their calls, in place."""
    _give_defaults(proto)
    _import_alike(proto)


def _give_defaults(proto: ModelProto) -> None:
    """Give calls the attributes that their functions have by default."""
    defaults = {(domain_of(f), f.name, f.overload): f.attribute_proto for f in proto.functions}
    for body in (proto.graph, *proto.functions) if defaults else ():
        for node in with_nested(body.node):
            given = {entry.name for entry in node.attribute}
            known = defaults.get((domain_of(node), node.op_type, node.overload), ())
            node.attribute.extend(entry for entry in known if entry.name not in given)


def _import_alike(proto: ModelProto) -> None:
    """Let functions import what the model does: the checker has seen that these agree."""
    versions = {opset.domain: opset.version for opset in proto.opset_import}
    for opset in (opset for function in proto.functions for opset in function.opset_import):
        opset.version = versions.get(opset.domain, opset.version)
