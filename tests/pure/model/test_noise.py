"""Tensors that depend on the values of inputs are made inexact, and by how much."""

import numpy as np
import pytest
from helpers.graphs import either, model, node, run, typed
from helpers.learned import classifier, learned
from onnx import TensorProto, helper

from ansor_deploy.model.graph.noise import NOISE, varying_tensors, with_noise


def test_what_depends_on_shapes_alone_is_exact():
    nodes = [node("Shape", "x", "s"), node("Abs", "s", "t"), node("Abs", "x", "y")]
    assert varying_tensors(model(nodes, {"x": (4,)}).graph) == {"x", "y"}


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.DOUBLE])
def test_sums_of_constants_are_inexact_unless_sizes_follow_from_them(kind):
    """Of angles of thousands a rounding is much: a table of their sines differs by as much."""
    nodes = [node("MatMul", "a b", "m"), node("Sin", "m", "s"), node("Add", "x s", "y")]
    nodes += [node("Cast", "m", "k", to=kind), node("Cast", "k", "n", to=TensorProto.FLOAT)]
    constants = {"a": np.full((4, 2), 1e3, np.float32), "b": np.ones((2, 5), np.float32)}
    proto = model(nodes, {"x": (4, 5)}, ["y", "n"], constants)
    feeds = {"x": np.zeros((4, 5), np.float32)}
    off = np.abs(run(with_noise(proto, 0), feeds)[0] - np.sin(2e3)).max()
    assert (off > 1e-4) == (kind == TensorProto.DOUBLE)


def test_a_branch_that_only_hands_on_what_varies_varies():
    made = helper.make_empty_tensor_value_info("a")
    branch = helper.make_graph([], "branch", [], [made])
    chosen = node("If", "c", "y", then_branch=branch, else_branch=branch)
    proto = model([node("Abs", "x", "a"), chosen], {"x": (4,)})
    assert varying_tensors(proto.graph) == {"x", "a", "y"}


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.FLOAT16])
@pytest.mark.parametrize("opset", [13, 21, 22, 25])
def test_noise_is_as_large_in_models_of_any_opset(opset, kind):
    """One rounding of the input and one of the product, each as large as uniform noise is."""
    proto = model([node("Mul", "x x", "y")], {"x": (4096,)}, opset=opset, dtype=kind)
    ones = np.ones(4096, helper.tensor_dtype_to_np_dtype(kind))
    first, second = (run(with_noise(proto, seed), {"x": ones})[0] for seed in (0, 1))
    assert (first != second).any()
    for made in (first, second):
        spread = np.sqrt(np.mean(np.square(made.astype(np.float64) - 1)))
        assert spread == pytest.approx(NOISE[kind] * np.sqrt(5 / 3), rel=0.1)


@pytest.mark.parametrize("opset", [17, 22])
def test_what_cancels_out_in_a_branch_is_inexact(opset):
    """Of a million a rounding is two."""
    then = [node("Add", "x m", "a"), node("Sub", "a m", "b")]
    chosen = either("c", "y", then, [node("Neg", "x", "n")])
    inputs = {"x": (TensorProto.FLOAT, (64,)), "c": (TensorProto.BOOL, ())}
    million = {"m": np.float32(1e6)}
    proto = typed([chosen], inputs, {"y": (TensorProto.FLOAT, (64,))}, million, opset)
    feed = {"x": np.ones(64, np.float32)}
    taken = ({**feed, "c": np.array(way)} for way in (True, False))
    first, second = (run(with_noise(proto, 0), one)[0] for one in taken)
    assert np.abs(first - 1).max() > 0.5
    assert np.abs(second + 1).max() < 1e-4


def test_what_a_loop_reads_from_outside_is_inexact():
    """Of a million, which cancels out inside of it."""
    values = {"i": (7, ()), "goes": (9, ()), "goes_on": (9, ()), "row": (1, (64,))}
    infos = [helper.make_tensor_value_info(name, *kind) for name, kind in values.items()]
    steps = [node("Sub", "x m", "row"), node("Identity", "goes", "goes_on")]
    body = helper.make_graph(steps, "step", infos[:2], infos[2:])
    known = {"m": np.float32(1e6), "n": np.array(1), "true": np.array(True)}
    proto = model([node("Loop", "n true", "y", body=body)], {"x": (64,)}, constants=known)
    (made,) = run(with_noise(proto, 0), {"x": np.full(64, 1e6 + 1, "f")})
    assert np.abs(made - 1).max() > 0.5


def test_what_lies_behind_an_operator_of_others_is_inexact():
    """Of which ONNX infers no types: steps of 16 bits, as ONNX Runtime's quantiser has them."""
    others = {"domain": "com.microsoft"}
    nodes = [
        node("QuantizeLinear", "x s z", "q", **others),
        node("DequantizeLinear", "q s z", "d", **others),
        node("Mul", "d d", "m"),
        node("Identity", "m", "y"),
    ]
    known = {"s": np.float32(1e-4), "z": np.uint16(0)}
    proto = model(nodes, {"x": (64,)}, constants=known)
    proto.opset_import.append(helper.make_opsetid(others["domain"], 1))
    first, second = (run(with_noise(proto, seed), {"x": np.ones(64, "f")})[0] for seed in (0, 1))
    assert (first != second).any()


def test_what_cancels_out_inside_a_vector_machine_is_as_inexact_as_its_sum():
    x = np.ones((5, 2), np.float32)
    words = {"coefficients": [900.0, -900.0], "support_vectors": [1.0, 2.0, 2.0, 1.0]}
    words |= {"n_supports": 2, "kernel_type": "RBF", "kernel_params": [0.1, 0.0, 3.0], "rho": [0.0]}
    noisy = with_noise(learned("SVMRegressor", {"x": x}, **words), 0)
    moved = abs(run(noisy, {"x": x})[0])
    assert (moved > 500 * NOISE[TensorProto.FLOAT]).all()


def test_a_probability_is_as_inexact_as_what_it_is_taken_from():
    """ONNX Runtime takes that of the other class from one, which leaves nothing of a small one."""
    x = np.ones((50, 1), np.float32)
    words = {"coefficients": [-30.0], "intercepts": [0.0], "classlabels_ints": [0, 1]}
    proto = classifier("LinearClassifier", x, 1, post_transform="LOGISTIC", **words)
    assert not run(proto, {"x": x})[1][:, 1].any()
    assert run(with_noise(proto, 0), {"x": x})[1][:, 1].any()


@pytest.mark.parametrize("opset", [17, 22])
def test_errors_that_are_alike_where_elements_are_do_not_vanish_in_a_mean(opset):
    """Of zeros each element is rounded as the others are: a mean of all is off as each is."""
    proto = model([node("Exp", "x", "y")], {"x": (64, 64)}, opset=opset)
    feed = {"x": np.zeros((64, 64), np.float32)}

    def off(seed, alike):
        (made,) = run(with_noise(proto, seed, alike=alike), feed)
        return abs(float(made.astype(np.float64).mean()) - 1)

    apart, same = (max(off(seed, alike) for seed in range(8)) for alike in (False, True))
    assert 8 * apart < same <= 2 * NOISE[TensorProto.FLOAT]


def test_equal_elements_have_equal_errors():
    proto = model([node("Exp", "x", "y")], {"x": (5, 64)})
    x = np.repeat(np.array([[0], [1], [-2], [3], [-np.inf]], np.float32), 64, axis=1)
    (made,) = run(with_noise(proto, 1, alike=True), {"x": x})
    assert (made == made[:, :1]).all()
    assert (made != np.exp(x)).any(axis=1).sum() >= 3
    assert not made[-1].any()
