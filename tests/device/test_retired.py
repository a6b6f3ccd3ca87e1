"""Instructions of a run under QEMU, ours and ONNX Runtime's, counted by a plugin."""

import numpy as np
import onnx
import pytest
from helpers.cli_inside import answer
from helpers.graphs import model, node, randn

from benchmarks.machine import emulated

ROWS, DEPTH, COLUMNS = 60, 64, 48


def test_the_multiply_adds_of_a_product_are_counted(tmp_path):
    if reason := emulated.missing():
        pytest.skip(reason)
    weights = {"w": randn(0, DEPTH, COLUMNS)}
    proto = model([node("MatMul", "x w", "y")], {"x": (ROWS, DEPTH)}, ["y"], weights)
    onnx.save(proto, tmp_path / "net.onnx")
    words = ("--target", "rpi3", "--registry", "r.db", "--trials", "0", "--no-verify")
    answer(tmp_path, "build", "net.onnx", *words)
    files = (tmp_path / "net.onnx", tmp_path / "net.so", tmp_path)
    (ours, found), (_, truth) = (emulated.retired(one, *files) for one in ("ours", "onnxruntime"))
    np.testing.assert_allclose(found, truth, rtol=1e-5, atol=1e-5)
    products = ROWS * DEPTH * COLUMNS // 4
    assert ours.vectors + ours.by_lane == pytest.approx(products, rel=0.01)
    assert ours.by_lane > ours.vectors
    assert 0 < ours.memory < ours.all - products
