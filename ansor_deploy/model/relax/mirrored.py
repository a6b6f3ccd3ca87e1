"""Mirrored borders, without arithmetic on the places along other axes.

    y[i, c] = x[i < 1 ? 1 - i : ..., c]

TVM's own function computes absolute values of the places along all axes, so that no axis is read in
vectors.
"""

from ..._tvm import relax, tvm


def legalized(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """A pad as a PrimFunc: ours where it mirrors, TVM's for others."""
    if call.attrs.pad_mode != "reflect":
        return call.op.get_attr("FLegalize")(builder, call)
    widths = call.attrs.pad_width
    mirror_pad = tvm.topi.nn.mirror_pad
    return builder.call_te(mirror_pad, call.args[0], widths[::2], widths[1::2], "REFLECT")
