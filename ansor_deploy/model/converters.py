"""Our converters of ONNX operators, where TVM has none, or its own stop fusion, crash, or copy.

A converter is a class like TVM's (`OnnxOpConverter`, with a method for each opset at which the
operator changed) and an entry of `CONVERTERS`; nothing else need know of it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from .._tvm import onnx_frontend, relax, tvm

# The front end has no hook for a converter of one's own: its table is read, and stood in for.
_TABLE = "_get_convert_map"


class _Clip(onnx_frontend.Clip):
    """Clip with constant bounds as one scalar operator.

    TVM's own converter emits two opaque calls, which stop layout conversion and fusion.
    """

    @classmethod
    def _impl_v1(cls, _bb: Any, inputs: Any, attr: Any, _params: Any) -> Any:
        low, high = attr.get("min", -np.inf), attr.get("max", np.inf)
        return relax.op.clip(inputs[0], float(low), float(high))

    @classmethod
    def _impl_v13(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        low, high = _bound(inputs[1], -np.inf), _bound(inputs[2], np.inf)
        floating = str(inputs[0].ty.dtype).startswith("float")
        if np.isnan(low) or np.isnan(high) or not floating:
            return super()._impl_v13(bb, inputs, attr, params)
        return relax.op.clip(inputs[0], low, high)

    _impl_v11 = _impl_v13


class _Gather(onnx_frontend.Gather):
    """Gather that stays inside its table: TVM's reads wild memory for an index out of range."""

    @classmethod
    def _impl_v13(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        taken = super()._impl_v13(bb, inputs, attr, params)
        if isinstance(taken, relax.Call) and taken.op.name == "relax.take":
            return relax.op.take(*taken.args, axis=attr.get("axis", 0), mode="clip")
        return taken


def _pairwise(converter: Any) -> Any:
    """Max or Min pair by pair: TVM's broadcast, stack and reduce, through memory each time."""

    class Pairwise(converter):
        @classmethod
        def _impl_v1(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
            if all(isinstance(each, tvm.ir.GenericConst) for each in inputs):
                return super()._impl_v1(bb, inputs, attr, params)
            return cls._impl_dynamic(bb, inputs)  # what TVM does where no shape is known

    return Pairwise


class _Pad(onnx_frontend.Pad):
    """Pad with a constant as an operator: TVM lowers it at once, which stops layout conversion."""

    @classmethod
    def _lower_pad(cls, bb: Any, inputs: Any, attr: Any, params: Any, allowed_modes: Any) -> Any:
        constant = attr.get("mode", b"constant") == b"constant"
        if not constant or not str(inputs[0].ty.dtype).startswith("float"):
            return super()._lower_pad(bb, inputs, attr, params, allowed_modes)
        before, after, value = cls._parse_pads_and_axes(inputs, params)
        if min(before + after) < 0:
            return super()._lower_pad(bb, inputs, attr, params, allowed_modes)
        widths = [width for pair in zip(before, after, strict=True) for width in pair]
        return relax.op.nn.pad(inputs[0], widths, "constant", float(value))


CONVERTERS = {
    "Clip": _Clip,
    "Gather": _Gather,
    "Max": _pairwise(onnx_frontend.Max),
    "Min": _pairwise(onnx_frontend.Min),
    "Pad": _Pad,
}


def converters() -> dict[str, Any]:
    """The converter of each operator that can be imported: TVM's, and ours in place of some."""
    return {**getattr(onnx_frontend, _TABLE)(), **CONVERTERS}


@contextmanager
def own_converters() -> Iterator[None]:
    """Our converters in TVM's table, for the length of an import."""
    table = converters()
    with patch.object(onnx_frontend, _TABLE, lambda: table):
        yield


def _bound(bound: Any, absent: float) -> float:
    """A clip bound as a number, NaN where it is computed in the graph."""
    if bound is None:
        return absent
    known = isinstance(bound, tvm.ir.GenericConst)
    return float(bound.value.numpy().reshape(())) if known else float("nan")
