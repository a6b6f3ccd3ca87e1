"""Networks as ONNX Runtime's quantiser writes them compute what ONNX Runtime does."""

from pathlib import Path

import onnx
import pytest
from helpers import built
from helpers.graphs import Calibration, model, node, randn
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
from onnxruntime.quantization import quantize_dynamic as by_range_at_run

from ansor_deploy.model.onnx.file import load
from ansor_deploy.ship.verify.oracle import Oracle
from ansor_deploy.ship.verify.tolerance import compare

SHAPE = (1, 3, 16, 16)


def network(folder: Path) -> Path:
    """A residual block, a gated convolution and a classifier."""
    nodes = [
        node("Conv", "x w1 b1", "c1", pads=[1] * 4, strides=[2, 2]),
        node("Relu", "c1", "r1"),
        node("Conv", "r1 w2 b1", "c2", pads=[1] * 4),
        node("Add", "c2 r1", "sum"),
        node("MaxPool", "sum", "m", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "m w3", "c3"),
        node("Sigmoid", "c3", "s"),
        node("Mul", "c3 s", "gated"),
        node("GlobalAveragePool", "gated", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f w4 b4", "y", transB=1),
    ]
    shapes = {"w1": (16, 3, 3, 3), "b1": (16,), "w2": (16, 16, 3, 3), "w3": (24, 16, 1, 1),
              "w4": (10, 24), "b4": (10,)}  # fmt: skip
    constants = {name: 0.3 * randn(at, *shape) for at, (name, shape) in enumerate(shapes.items())}
    onnx.save(model(nodes, {"x": SHAPE}, constants=constants), path := folder / "float.onnx")
    return path


def statically(form: QuantFormat, kind: QuantType, per_channel: bool):
    def quantise(source: Path, target: Path):
        settings = {"per_channel": per_channel, "activation_type": kind, "quant_format": form}
        # Weights of seven bits: without VNNI ONNX Runtime's sums of pairs saturate.
        settings["reduce_range"] = kind == QuantType.QUInt8
        quantize_static(
            source,
            target,
            Calibration({"x": randn(seed, *SHAPE)} for seed in range(2)),
            weight_type=QuantType.QInt8,
            **settings,
        )

    return quantise


FORMS = {
    "pairs": statically(QuantFormat.QDQ, QuantType.QUInt8, per_channel=True),
    "signed-pairs": statically(QuantFormat.QDQ, QuantType.QInt8, per_channel=False),
    "operators": statically(QuantFormat.QOperator, QuantType.QUInt8, per_channel=True),
    "signed-operators": statically(QuantFormat.QOperator, QuantType.QInt8, per_channel=False),
    "dynamic": by_range_at_run,
}


@pytest.mark.parametrize("form", FORMS)
def test_quantised_network_is_that_of_the_oracle(form, tmp_path):
    FORMS[form](network(tmp_path), path := tmp_path / "quantised.onnx")
    proto = load(path).proto
    feeds, expected = Oracle(proto).ask(built.imported(proto).inputs, seed=0)
    assert compare(built.run(proto, feeds)[0], expected["y"])[0]


def test_rounding_is_fused_into_the_convolution_before_it(tmp_path):
    FORMS["pairs"](network(tmp_path), path := tmp_path / "quantised.onnx")
    kernels = built.count_ops(load(path).proto)
    # Three convolutions, a product, two pools, the input, and what flattening may cost.
    assert sum(kernels.values()) <= 8, kernels
