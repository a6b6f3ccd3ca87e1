"""What a processor does of products of bytes, measured, and how many of them a task has."""

import numpy as np
import pytest
from helpers import built, graphs
from helpers.graphs import node
from onnx import TensorProto

from ansor_deploy.measure.byte_peak import byte_gops
from ansor_deploy.measure.peaks import bandwidths, float_gflops
from ansor_deploy.model.relax.byte_products import byte_products
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.runtime import native

LEAST = 1.0  # 10^9 operations a second, of any processor that runs this at all


@pytest.mark.parametrize("target", [built.HOST, built.with_vectors(16)], ids=["host", "narrow"])
def test_a_product_of_bytes_is_timed(target):
    assert byte_gops(target) > LEAST
    assert byte_gops(target) is byte_gops(target)


def test_no_product_of_bytes_is_slower_than_one_of_floats():
    """Both are of the same processor: what either says cannot be far off the other."""
    assert LEAST < float_gflops(built.HOST) < 2 * byte_gops(built.HOST)
    assert float_gflops(built.HOST) is float_gflops(built.HOST)


def test_every_level_is_read_once():
    levels = bandwidths(built.HOST, 1)
    assert [size for size, _ in levels][-1] == float("inf")
    assert all(rate > 1e6 for _, rate in levels)
    assert bandwidths(built.HOST, 1) is levels


def test_no_vector_that_is_read_lies_in_two_lines():
    tensors = [native.tensor(np.ones((rows, 8, 16), "float32")) for rows in (3, 5, 1024)]
    assert {np.from_dlpack(one).ctypes.data % 64 for one in tensors} == {0}


def counted(op, shape, weights, **attributes):
    """Products of bytes of all tasks of a model of one operator."""
    nodes = [
        node("Cast", "x", "bytes", to=TensorProto.UINT8),
        node(op, "bytes w", "sums", **attributes),
        node("Cast", "sums", "y", to=TensorProto.FLOAT),
    ]
    mod = built.imported(graphs.model(nodes, {"x": shape}, constants={"w": weights})).mod
    return sum(byte_products(task.mod) for task in extract(mod, built.HOST).values())


def test_what_adds_up_products_of_bytes_is_counted():
    window, matrix = np.ones((8, 4, 3, 3), np.int8), np.ones((8, 7), np.int8)
    assert counted("ConvInteger", (1, 4, 6, 6), window, pads=[1] * 4) == 8 * 4 * 9 * 36
    assert counted("MatMulInteger", (3, 8), matrix) == 3 * 8 * 7


def test_what_adds_up_products_of_floats_is_not():
    tasks = extract(built.imported(graphs.dense(5, 7)).mod, built.HOST)
    assert [byte_products(task.mod) for task in tasks.values()] == [0]
