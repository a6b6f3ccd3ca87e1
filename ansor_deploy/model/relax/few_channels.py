"""Convolutions of few channels, such as an image's, from channels first to channels last.

Moving three channels last and padding them there takes longer than half of the convolution. The
rows of each channel are contiguous already:

    conv_nhwc(transpose(x), w)
    -->
    out[n, h, w, o] = sum over c, r, s: x[n, c, h * stride + r, w * stride + s] * weight[c, r, s, o]
"""

from typing import Any

from ..._tvm import relax, shape_of, tvm

# With up to this many channels, moving them last costs more than it gains.
MOST_CHANNELS = 4
_LAYOUT, _KERNEL, _OUT = "NCHW", "IHWO", "NHWC"


def is_few(data: Any, attrs: Any) -> bool:
    """Whether a 2-D convolution's data (channels first) has few channels."""
    shape = shape_of(data.ty)
    return len(shape) == 4 and shape[1] <= MOST_CHANNELS and int(attrs.groups) == 1


def convolution(data: Any, weight: Any, given: dict[str, Any], out_dtype: Any) -> Any:
    """The convolution, with channels last in its result. weight: [in, height, width, out]."""
    layouts = {"data_layout": _LAYOUT, "kernel_layout": _KERNEL, "out_layout": _OUT}
    return relax.op.nn.conv2d(data, weight, **given, **layouts, out_dtype=out_dtype)


def legalized(builder: Any, call: Any) -> Any:
    """A 2-D convolution as a PrimFunc: ours for few channels, TVM's for others."""
    attrs = call.attrs
    if (attrs.data_layout, attrs.kernel_layout, attrs.out_layout) != (_LAYOUT, _KERNEL, _OUT):
        return call.op.get_attr("FLegalize")(builder, call)
    window = [[int(one) for one in getattr(attrs, name)] for name in ("strides", "dilation")]
    padding = [int(one) for one in attrs.padding]
    given = (*window, padding, str(call.ty.dtype))
    return builder.call_te(_computed, *call.args, *given, primfunc_name_hint="conv2d")


def _computed(
    x: Any, weight: Any, strides: list[int], dilation: list[int], padding: list[int], dtype: str
) -> Any:
    top, left, bottom, right = padding
    padded = tvm.topi.nn.pad(x, [0, 0, top, left], [0, 0, bottom, right]) if any(padding) else x
    n, _, height, width = (int(extent) for extent in padded.shape)
    channels, rows, columns, outputs = (int(extent) for extent in weight.shape)
    c, r, s = (tvm.te.reduce_axis((0, extent)) for extent in (channels, rows, columns))
    size = [
        (whole - (taps - 1) * apart - 1) // stride + 1
        for whole, taps, apart, stride in zip(
            (height, width), (rows, columns), dilation, strides, strict=True
        )
    ]

    def at(i: Any, y: Any, z: Any, o: Any) -> Any:
        value = padded[i, c, y * strides[0] + r * dilation[0], z * strides[1] + s * dilation[1]]
        return tvm.te.sum(value.astype(dtype) * weight[c, r, s, o].astype(dtype), axis=[c, r, s])

    return tvm.te.compute((n, *size, outputs), at, name="conv2d")
