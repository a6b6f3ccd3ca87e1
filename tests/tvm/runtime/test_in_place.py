"""Inputs are read and outputs are written where they lie, whatever memory that is."""

import re

import numpy as np
import pytest
from helpers import graphs
from helpers.built import HOST, compiled, imported

from ansor_deploy.errors import UsageError
from ansor_deploy.runtime import native
from ansor_deploy.runtime.dlpack import in_place
from ansor_deploy.runtime.model import Model

SHAPE = (6, 40)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """relu(x) * v, and its rows' sums."""
    nodes = [
        graphs.node("Relu", "x", "positive"),
        graphs.node("Mul", "positive v", "y"),
        graphs.node("ReduceSum", "y axis", "sum", keepdims=0),
    ]
    proto = graphs.model(nodes, {"x": SHAPE, "v": SHAPE}, ["y", "sum"], constants={"axis": [1]})
    path = tmp_path_factory.mktemp("library") / "model.so"
    compiled(proto).export(path, HOST)
    manifest = imported(proto).interfaces[0].to_json()
    return Model(path, {**manifest, "target": HOST.to_json()})


X, V = graphs.randn(0, *SHAPE), graphs.randn(1, *SHAPE)
WANT = np.maximum(X, 0) * V


def placed(values, offset):
    """The values in memory that begins so many bytes after a multiple of 64."""
    memory = np.zeros(values.nbytes + 128, np.uint8)
    begin = -memory.ctypes.data % 64 + offset
    made = memory[begin : begin + values.nbytes].view(values.dtype).reshape(values.shape)
    made[...] = values
    return made


def read_only(values):
    made = values.copy()
    made.flags.writeable = False
    return made


MEMORIES = {
    "aligned": lambda values: placed(values, 0),
    "to elements": lambda values: placed(values, 4),
    "not even that": lambda values: placed(values, 3),
    "every other row": lambda values: np.repeat(values, 2, axis=0)[::2],
    "Fortran's order": np.asfortranarray,
    "read-only": read_only,
}


@pytest.mark.parametrize("name", MEMORIES)
def test_an_input_may_lie_anywhere(model, name):
    for factor in (1, 2):  # a copy's memory is used again
        x = MEMORIES[name](X * factor)
        made = model(x=x, v=V)
        np.testing.assert_allclose(made["y"], WANT * factor, rtol=1e-6)
        np.testing.assert_array_equal(x, X * factor)


@pytest.mark.parametrize("offset", [0, 4, 36])
def test_outputs_are_written_where_the_caller_says(model, offset):
    y, sums = placed(np.zeros_like(X), offset), np.zeros(SHAPE[0], np.float32)
    around = y.base
    assert model.run_into({"sum": sums, "y": y}, x=X, v=V) is None
    np.testing.assert_allclose(y, WANT, rtol=1e-6)
    np.testing.assert_allclose(sums, WANT.sum(axis=1), rtol=1e-5)
    y[...] = 0
    assert not around.any()


class Tensor:
    """Another library's: all that is known of it is that it exchanges its memory."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Elsewhere(Tensor):
    """One that does not lend its memory, as DLPack says it: that of a GPU, or of a gradient."""

    def __dlpack__(self, stream=None):
        raise BufferError("it is not in the processor's memory")


def test_tensors_of_other_libraries_lie_where_they_are(model):
    x, y, sums = placed(X, 0), placed(np.zeros_like(X), 0), np.zeros(SHAPE[0], np.float32)
    lent = in_place({"x": Tensor(x)})["x"]
    assert np.shares_memory(lent, x)
    assert native.borrowed(lent) is not None  # so it is not copied
    model.run_into({"sum": Tensor(sums), "y": Tensor(y)}, x=Tensor(x), v=V)
    np.testing.assert_allclose(y, WANT, rtol=1e-6)
    result = model(x=Tensor(x), v=V)["y"]
    assert np.shares_memory(np.from_dlpack(Tensor(result)), result)
    with pytest.raises(UsageError, match="x: a Elsewhere that cannot be read where it lies"):
        model(x=Elsewhere(x), v=V)
    with pytest.raises(UsageError, match="y: a list, and no array"):
        model.run_into({"sum": sums, "y": [0.0]}, x=x, v=V)


def test_an_output_may_be_an_input_too(model):
    x, sums = X.copy(), np.zeros(SHAPE[0], np.float32)
    model.run_into({"y": x, "sum": sums}, x=x, v=V)
    np.testing.assert_allclose(x, WANT, rtol=1e-6)
    np.testing.assert_allclose(sums, WANT.sum(axis=1), rtol=1e-5)


Y, SUM = np.zeros(SHAPE, np.float32), np.zeros(SHAPE[0], np.float32)
REFUSED = {
    "y: missing": {"sum": SUM},
    "z: no such output": {"y": Y, "sum": SUM, "z": Y.copy()},
    "y: float64[6, 40] given": {"y": Y.astype(np.float64), "sum": SUM},
    "sum: float32[6, 1] given": {"y": Y, "sum": SUM[:, None]},
    "y and sum: they share memory": {"y": Y, "sum": Y[0, : SHAPE[0]]},
    "y: not contiguous": {"y": np.asfortranarray(Y), "sum": SUM},
    "sum: not contiguous, not aligned, or not to be written to": {"y": Y, "sum": read_only(SUM)},
}


@pytest.mark.parametrize("said", REFUSED)
def test_outputs_that_do_not_fit_are_refused(model, said):
    with pytest.raises(UsageError, match=re.escape(said)) as refused:
        model.run_into(REFUSED[said], x=X, v=V)
    assert "it gives y: float32[6, 40], sum: float32[6]" in refused.value.hint
    assert not Y.any()
