"""Quantised networks: a float one in each way that ONNX Runtime's quantiser writes integers.

Weights are quantised per channel, but for one way, activations from seeded random calibration: what
comes out predicts nothing, but has the structure, and the spread of scales, of a quantised network.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import version_converter

from ansor_deploy.ship.verify.onnx_runtime import open_session

PER_CHANNEL = 13  # the first opset in which DequantizeLinear has an axis
CALIBRATIONS = 4  # random samples


def quantised(model: onnx.ModelProto, way: str, seed: int = 0) -> onnx.ModelProto:
    """A float network quantised in one of `WAYS`; the same seed gives the same network."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory() as folder:
        source, ready, made = (str(Path(folder, f"{name}.onnx")) for name in ("a", "b", "c"))
        onnx.save(_with_axes(model), source)
        quant_pre_process(source, ready, skip_symbolic_shape=True)
        WAYS[way](ready, made, seed)
        return onnx.load(made)


def _with_axes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in an opset that can say of which channel a scale is."""
    (opset,) = (one.version for one in model.opset_import if not one.domain)
    if opset >= PER_CHANNEL:
        return model
    return version_converter.convert_version(model, PER_CHANNEL)


class _Random:
    """Seeded inputs of a model one after the other, as the quantiser asks for them."""

    def __init__(self, path: str, seed: int) -> None:
        self._inputs = open_session(Path(path), 0).get_inputs()
        self._random = np.random.default_rng(seed)
        self._left = CALIBRATIONS

    def get_next(self) -> dict[str, np.ndarray] | None:
        """The next sample; None after the last one."""
        self._left -= 1
        return {one.name: self._draw(one) for one in self._inputs} if self._left >= 0 else None

    def _draw(self, one: Any) -> np.ndarray:
        if "int" in one.type:  # indices, which any table of two rows has
            return self._random.integers(0, 2, one.shape).astype(one.type[len("tensor(") : -1])
        return self._random.standard_normal(one.shape, "float32")


def _static(
    layout: str, activations: str, *, per_channel: bool = True
) -> Callable[[str, str, int], None]:
    def quantise(source: str, made: str, seed: int) -> None:
        from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

        quantize_static(
            source,
            made,
            _Random(source, seed),
            quant_format=QuantFormat[layout],
            activation_type=QuantType[activations],
            weight_type=QuantType.QInt8,
            per_channel=per_channel,
        )

    return quantise


def _dynamic(source: str, made: str, seed: int) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(source, made, per_channel=True, weight_type=QuantType.QInt8)


# qdq: float operators between conversions, of unsigned activations; qdq-s8: of signed ones;
# qdq-tensor: of weights of one scale.
# qoperator: operators on integers. dynamic: activations are quantised by what a run finds.
WAYS: dict[str, Callable[[str, str, int], None]] = {
    "qdq": _static("QDQ", "QUInt8"),
    "qdq-s8": _static("QDQ", "QInt8"),
    "qdq-tensor": _static("QDQ", "QUInt8", per_channel=False),
    "qoperator": _static("QOperator", "QUInt8"),
    "dynamic": _dynamic,
}
