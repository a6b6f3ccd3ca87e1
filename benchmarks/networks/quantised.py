"""Quantised networks: a float network in each form that ONNX Runtime's quantiser writes.

Weights are quantised per channel, except in two ways; activations are calibrated on seeded random
inputs. Predictions mean nothing, but structure and spread of scales are those of quantised
networks. Blocks of weights are quantised here, as ONNX Runtime's tool for that needs more packages.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, version_converter

from ansor_deploy.ship.verify.onnx_runtime import open_session

PER_CHANNEL = 13  # the first opset in which DequantizeLinear has an axis
OF_BLOCKS = 21  # the first opset in which it has a block_size
BLOCK = 32  # rows that share a scale
MOST = 7  # the largest signed 4-bit value
CALIBRATIONS = 4  # random samples for calibration


def quantised(model: onnx.ModelProto, way: str, seed: int = 0) -> onnx.ModelProto:
    """A float network quantised in one of `WAYS`; the same seed gives the same network."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory() as folder:
        source, ready, made = (str(Path(folder, f"{name}.onnx")) for name in ("a", "b", "c"))
        onnx.save(_of_opset(model, PER_CHANNEL), source)
        quant_pre_process(source, ready, skip_symbolic_shape=True)
        WAYS[way](ready, made, seed)
        return onnx.load(made)


def _of_opset(model: onnx.ModelProto, least: int) -> onnx.ModelProto:
    """The model in this opset, or in its own if that is later."""
    (opset,) = (one.version for one in model.opset_import if not one.domain)
    return model if opset >= least else version_converter.convert_version(model, least)


class _Random:
    """Seeded random inputs of a model, in the interface of the quantiser's calibration."""

    def __init__(self, path: str, seed: int) -> None:
        self._inputs = open_session(Path(path), 0).get_inputs()
        self._random = np.random.default_rng(seed)
        self._left = CALIBRATIONS

    def get_next(self) -> dict[str, np.ndarray] | None:
        """The next sample; None after the last one."""
        self._left -= 1
        return {one.name: self._draw(one) for one in self._inputs} if self._left >= 0 else None

    def _draw(self, one: Any) -> np.ndarray:
        if "int" in one.type:  # indices, which are valid in any table with two rows
            return self._random.integers(0, 2, one.shape).astype(one.type[len("tensor(") : -1])
        return self._random.standard_normal(one.shape, "float32")


def _static(
    layout: str, activations: str, *, per_channel: bool = True, biases: bool = True
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
            extra_options={"QuantizeBias": biases},
        )

    return quantise


def _dynamic(source: str, made: str, seed: int) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(source, made, per_channel=True, weight_type=QuantType.QInt8)


def _by_blocks(source: str, made: str, _seed: int) -> None:
    model = _of_opset(onnx.load(source), OF_BLOCKS)
    read = {node.input[1] for node in model.graph.node if node.op_type == "MatMul"}
    for tensor in [one for one in model.graph.initializer if one.name in read]:
        weights = numpy_helper.to_array(tensor)
        if weights.ndim == 2 and len(weights) % BLOCK == 0:
            model.graph.initializer.remove(tensor)
            model.graph.initializer.extend(_blocks(tensor.name, weights))
            given = [f"{tensor.name}_{part}" for part in ("bits", "scale")]
            made_of = helper.make_node(
                "DequantizeLinear", given, [tensor.name], axis=0, block_size=BLOCK
            )
            model.graph.node.insert(0, made_of)
    onnx.save(model, made)


def _blocks(name: str, weights: np.ndarray) -> list[onnx.TensorProto]:
    """A matrix as 4-bit numbers, and their scales."""
    blocks = weights.reshape(-1, BLOCK, weights.shape[1])
    scale = np.maximum(np.abs(blocks).max(1, keepdims=True) / MOST, np.finfo("float32").tiny)
    bits = np.rint(blocks / scale).astype("int8").reshape(weights.shape)
    return [
        helper.make_tensor(f"{name}_bits", onnx.TensorProto.INT4, weights.shape, bits.ravel()),
        numpy_helper.from_array(scale[:, 0].astype("float32"), f"{name}_scale"),
    ]


# qdq: float operators between conversions, with uint8 activations. qdq-s8: with int8 ones. qdq-u16:
# with uint16 ones. qdq-tensor: with one scale for each weight. pt2e: with int8 activations and
# float32 biases, as PyTorch exports them. qoperator: operators on integers. dynamic: activations
# are quantised by their range in each run. blocks: only weights of matrices are quantised, with a
# scale for each block of rows in a column.
WAYS: dict[str, Callable[[str, str, int], None]] = {
    "qdq": _static("QDQ", "QUInt8"),
    "qdq-s8": _static("QDQ", "QInt8"),
    "qdq-u16": _static("QDQ", "QUInt16"),
    "qdq-tensor": _static("QDQ", "QUInt8", per_channel=False),
    "pt2e": _static("QDQ", "QInt8", biases=False),
    "qoperator": _static("QOperator", "QUInt8"),
    "dynamic": _dynamic,
    "blocks": _by_blocks,
}
