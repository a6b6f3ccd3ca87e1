"""A wrong kernel of each family is found, and a right one that rounds otherwise is not.

What stands for the library is ONNX Runtime without its optimisations, on the model or on one in
which a single thing is wrong.
"""

import numpy as np
import onnxruntime
import pytest
from helpers.graphs import model, node, randn
from onnx import helper

from ansor_deploy.request import Tolerance
from ansor_deploy.runtime.interface import Interface, TensorInfo
from ansor_deploy.ship.verify.oracle import Oracle
from ansor_deploy.ship.verify.verify import verify_model


class Plain:
    """A library that computes node by node what a model says, and then what `spoil` makes of it."""

    batches = None

    def __init__(self, proto, spoil=lambda outputs: None):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
        inputs, outputs = (tuple(map(info, s)) for s in (proto.graph.input, proto.graph.output))
        self.interfaces, self._spoil = [Interface(inputs, outputs)], spoil

    def __call__(self, **inputs):
        names = [one.name for one in self._session.get_outputs()]
        made = dict(zip(names, self._session.run(names, inputs), strict=True))
        self._spoil(made)
        return made


def info(value):
    kind = value.type.tensor_type
    shape = tuple(dim.dim_value for dim in kind.shape.dim)
    return TensorInfo(value.name, shape, str(helper.tensor_dtype_to_np_dtype(kind.elem_type)))


def off(values, at, share):
    """An array with one element off by a share of the largest."""
    made = np.array(values)
    made.reshape(-1)[at] += share * np.abs(made).max()
    return made


CONSTANTS = {
    "w": randn(1, 8, 3, 3, 3) * 0.2,
    "b": randn(2, 8),
    "taps": randn(3, 8, 1, 3, 3) * 0.3,
    "m": randn(7, 8, 20) * 0.3,
    "gamma": np.abs(randn(8, 20)) + 0.5,
    "beta": randn(9, 20),
}
WRONG = {
    "a weight": {"w": off(CONSTANTS["w"], 40, 0.01)},
    "a bias": {"b": off(CONSTANTS["b"], 0, 1e-3)},
    "a depthwise tap": {"taps": off(CONSTANTS["taps"], 40, 0.01)},
    "a depthwise edge": {"pads": [2, 2, 0, 0]},
    "an activation": {"activation": "Abs"},
    "a pool": {"pool": "AveragePool"},
    "a reduction": {"reduction": "ReduceMax"},
    "a product": {"m": off(CONSTANTS["m"], 0, 0.2)},
    "a norm": {"epsilon": 1e-3},
    "a scale": {"gamma": off(CONSTANTS["gamma"], 4, 0.02)},
    "an order": {"perm": [0, 1, 3, 2]},
}


def network(
    pads=(1, 1, 1, 1),
    activation="Relu",
    pool="MaxPool",
    reduction="ReduceMean",
    epsilon=1e-5,
    perm=(0, 1, 2, 3),
    **constants,
):
    """One of each family: convolutions, pools, layouts, reductions, products, norms, a softmax."""
    nodes = [
        node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
        node(activation, "c", "r"),
        node("Conv", "r taps", "d", pads=list(pads), group=8),
        node(pool, "d", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Transpose", "p", "t", perm=list(perm)),
        node("Concat", "t d2", "cc", axis=2),
        node(reduction, "cc", "g", axes=[2], keepdims=0),
        node("ReduceMean", "g", "h", axes=[2], keepdims=0),
        node("MatMul", "h m", "mm"),
        node("LayerNormalization", "mm gamma beta", "l", epsilon=epsilon),
        node("Softmax", "l", "y"),
    ]
    more = {"d2": randn(11, 2, 8, 2, 6)}
    return model(nodes, {"x": (2, 3, 12, 12)}, ("y", "t"), CONSTANTS | more | constants)


def test_what_rounds_otherwise_is_right():
    assert verify_model(Plain(network()), [Oracle(network())], seed=0).ok


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_kernel_is_found(wrong):
    said = verify_model(Plain(network(**wrong)), [Oracle(network())], seed=0)
    assert not said.ok
    assert "than the" in next(iter(said.wrong.values()))


def detector():
    """Boxes in pixels and scores in one output, as detectors have them, and the best by score."""
    rows, twins = 40, randn(1, 16, 20)
    constants = {
        # Half of the scores are as good as the other half.
        "ws": np.concatenate([twins, twins * np.float32(1 + 1e-7)], axis=1) * 0.3,
        "wb": randn(2, 16, rows * 4) * 100,
        "shape": np.array([1, rows, 4]),
        "k": np.array([30]),
        "axis": np.array([2]),
        "wide": np.array([1, 30, 4]),
    }
    nodes = [
        node("MatMul", "x ws", "raw"),
        node("Sigmoid", "raw", "s"),
        node("MatMul", "x wb", "flat"),
        node("Reshape", "flat shape", "b"),
        node("Unsqueeze", "s axis", "column"),
        node("Concat", "b column", "all", axis=2),
        node("TopK", "s k", "best at", axis=1),
        node("Unsqueeze", "at axis", "places"),
        node("Expand", "places wide", "indices"),
        node("GatherElements", "b indices", "boxes", axis=1),
    ]
    return model(nodes, {"x": (1, 16)}, ("all", "best", "boxes"), constants)


def exchanged(outputs):
    """The two best change places: their scores are as good as equal."""
    boxes = outputs["boxes"]
    boxes[:, [0, 1]] = boxes[:, [1, 0]]


def score_off(outputs):
    outputs["all"][0, 3, 4] += 0.05


def box_off(outputs):
    outputs["boxes"][0, 7, 2] += 0.05


def doubled(outputs):
    outputs["boxes"][0, 0] = outputs["boxes"][0, 1]


def test_rows_may_come_in_any_order_that_rounding_explains():
    assert verify_model(Plain(detector(), exchanged), [Oracle(detector())], seed=0).ok


def test_rows_of_a_model_that_sorts_nothing_come_in_one_order():
    assert not Oracle(network()).sorts


@pytest.mark.parametrize("spoil", [score_off, box_off, doubled])
def test_a_small_output_beside_large_ones_is_held_to_its_own(spoil):
    said = verify_model(Plain(detector(), spoil), [Oracle(detector())], seed=0)
    assert set(said.wrong) == {"all" if spoil is score_off else "boxes"}


@pytest.mark.parametrize(
    ("allowed", "ok"),
    [
        ({"all": Tolerance(atol=0.1)}, True),
        ({"": Tolerance(atol=0.1)}, True),
        ({"all": Tolerance(atol=0.01)}, False),
        ({"boxes": Tolerance(atol=0.1)}, False),
    ],
)
def test_who_knows_better_allows_more(allowed, ok):
    library = Plain(detector(), score_off)
    assert verify_model(library, [Oracle(detector())], 0, allowed).ok == ok


def test_a_norm_of_zeros_is_not_held_to_its_rounding():
    """What it makes of equal numbers is their rounding, three hundred times as large."""
    nodes = [
        node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
        node("InstanceNormalization", "c one zero", "n"),
        node("Conv", "n v", "y", pads=[1, 1, 1, 1]),
    ]
    constants = {"w": randn(1, 8, 2, 3, 3), "b": 10 + randn(2, 8), "v": randn(3, 4, 8, 3, 3)}
    constants |= {"one": np.ones(8, np.float32), "zero": np.zeros(8, np.float32)}
    proto = model(nodes, {"x": (1, 2, 9, 9)}, constants=constants)

    class Rounded(Plain):
        """Off by as much as 1e-6 of the mean would be."""

        def __call__(self, **inputs):
            made = super().__call__(**inputs)
            return made if inputs["x"].any() else {"y": made["y"] + np.float32(3e-3)}

    assert verify_model(Rounded(proto), [Oracle(proto)], seed=0).ok
