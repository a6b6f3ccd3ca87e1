"""Kernels take planned tensors as they are, and check a caller's."""

import numpy as np
import pytest
from helpers import built, graphs
from helpers.graphs import node

from ansor_deploy.runtime.native import ffi

CHECK = b" data pointer is NULL on argument #"
RIGHT = np.ones((3, 8), np.float32)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Softmaxes of transposed tensors, one after another: the one in the middle is planned."""
    steps = [("Softmax", "Transpose")[at % 2] for at in range(5)]
    names = ["x", *(f"t{at}" for at in range(4)), "y"]
    nodes = [node(op, names[at], names[at + 1]) for at, op in enumerate(steps)]
    path = tmp_path_factory.mktemp("library") / "model.so"
    made = built.compiled(graphs.model(nodes, {"x": RIGHT.shape}))
    made.export(path, built.HOST)
    return path, made


def test_only_kernels_that_take_a_callers_tensor_check_them(library):
    _, made = library
    checked = [CHECK in code for code in made.objects.values()]
    assert any(checked)
    assert not all(checked)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (RIGHT[:2], "shape"),
        (RIGHT.astype(np.float64), "dtype"),
        (RIGHT.ravel(), "ndim"),
        (np.ones((8, 3), np.float32).T, "strides|compact"),
    ],
)
def test_what_a_library_is_called_with_is_checked(library, given, why):
    path, _ = library
    main = built.open_machine(path, ["main"])["main"]
    main(ffi().from_dlpack(RIGHT))
    with pytest.raises(Exception, match=why):
        main(ffi().from_dlpack(given))
