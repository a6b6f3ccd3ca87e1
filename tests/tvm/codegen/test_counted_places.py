"""Places that are checked, and what is written at them, where a run decides how many there are."""

import numpy as np
import pytest
from helpers import graphs
from helpers.built import HOST
from helpers.graphs import node, randn
from helpers.ranges import opened
from onnx import TensorProto

from ansor_deploy._tvm import bindings, relax
from ansor_deploy.codegen.lengths import whole
from ansor_deploy.codegen.memory.in_place import is_kernel
from ansor_deploy.codegen.model import compile_model
from ansor_deploy.model.batches import Span
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.model.relax.importer import import_model
from ansor_deploy.runtime.functions import into_functions

ROOM, LENGTH = 96, 5
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
W = randn(9, 4, 4)
# For each result: its node, the shapes of data, places and updates, and the extent that the last
# place indexes. "n" is any length.
CASES = {
    "rows": ("ScatterElements", {"axis": 1}, (1, "n", 4), (1, 2, 4), (1, 2, 4), LENGTH),
    "sums": ("ScatterElements", {"axis": 1, "reduction": "add"}, (1, 3, "n"), (1, 2, "n"),
             (1, 2, "n"), 3),
    "only": ("ScatterElements", {"axis": 0}, (1, "n"), (1, "n"), (1, "n"), 1),
    "slices": ("ScatterND", {}, (3, 4), (1, "n", 1), (1, "n", 4), 3),
    "largest": ("ScatterND", {"reduction": "max"}, (1, "n", 4), (1, "n", 2), (1, "n", 4), LENGTH),
    "least": ("ScatterElements", {"axis": 1, "reduction": "min"}, (1, "n"), (1, "n"), (1, "n"),
              LENGTH),
    "scaled": ("ScatterElements", {"axis": 1, "reduction": "mul"}, (1, "n"), (1, "n"), (1, "n"),
               LENGTH),
    "pairs": ("GatherElements", {"axis": 1}, ("n", 4), ("n", "n"), None, 4),
    "picked": ("Gather", {"axis": 1}, (1, "n", 4), (1, "n"), None, LENGTH),
}  # fmt: skip


def sized(shape, length):
    return tuple(length if n == "n" else n for n in shape)


def fed(length):
    """Inputs of a length, with places that count from either end."""
    feeds = {}
    for at, (name, (_, _, data, places, updates, _)) in enumerate(CASES.items()):
        feeds[f"d{name}"] = randn(at, *sized(data, length))
        feeds[f"p{name}"] = np.zeros(sized(places, length), np.int64)
        if updates:
            feeds[f"u{name}"] = randn(at + 50, *sized(updates, length))
    return feeds


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The model of all cases, its function, its interface, and the names of its kernels."""
    shapes, nodes, names = {}, [], []
    for name, (op, words, data, places, updates, _) in CASES.items():
        shapes |= {f"d{name}": data, f"p{name}": places} | (
            {f"u{name}": updates} if updates else {}
        )
        given = f"d{name} p{name} u{name}" if updates else f"m{name} p{name}"
        nodes += [] if updates else [node("MatMul", f"d{name} w", f"m{name}")]
        nodes.append(node(op, given, name, **words))
    kinds = {key: (INT64 if key[0] == "p" else FLOAT, shape) for key, shape in shapes.items()}
    proto = graphs.typed(nodes, kinds, dict.fromkeys(CASES, FLOAT), {"w": W}, opset=18)
    spans = {key: sized(shape, Span(1, ROOM)) for key, shape in shapes.items()}
    imported = import_model(opened(proto, spans), HOST)
    changed = whole._changed

    def noted(mod, context):
        made = changed(mod, context)
        mains = [f for f in made.functions.values() if isinstance(f, relax.Function)]
        calls = (one.value for main in mains for one in bindings(main) if is_kernel(one.value))
        names.extend(one.op.name_hint for one in calls)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole, "_changed", noted)
        built = compile_model(imported, extract(imported.mod, HOST), {}, HOST)
    built.export(path := tmp_path_factory.mktemp("places") / "net.so", HOST)
    return proto, into_functions(path, 1, 1, None)[1][0], imported.interfaces[0], names


def called(library, feeds, length):
    """The results of a call, cut to what counts, by name; behind the inputs lie other numbers."""
    _, function, interface, _ = library
    given = []
    for one in interface.inputs:
        room = np.full(one.shape, 99, one.dtype)
        value = feeds.get(one.name, np.array(length, np.int64))
        room[tuple(map(slice, value.shape))] = value
        given.append(room)
    made = {one.name: np.zeros(one.shape, one.dtype) for one in interface.outputs}
    function(given, list(made.values()))
    cuts = {one.name: {axis: int(made[n]) for axis, n in one.lengths} for one in interface.outputs}
    return {
        name: array[tuple(slice(cuts[name].get(at)) for at in range(array.ndim))]
        for name, array in made.items()
    }


@pytest.mark.parametrize("length", [LENGTH, 1, ROOM])
def test_places_count_from_either_end_of_what_counts(library, length):
    feeds = fed(length)
    for name, (*_, extent) in CASES.items():
        feeds[f"p{name}"].flat[0] = -1 if name != "largest" else 0
        feeds[f"p{name}"].flat[-1] = -length if extent == LENGTH else -extent
    want = dict(zip(CASES, graphs.run(library[0], feeds), strict=True))
    have = called(library, feeds, length)
    for name in CASES:
        np.testing.assert_allclose(have[name], want[name], rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", CASES)
def test_a_place_beyond_what_counts_is_an_error(library, name):
    extent = CASES[name][-1]
    for last in (extent, -extent - 1):
        feeds = fed(LENGTH)
        feeds[f"p{name}"].flat[-1] = last
        with pytest.raises(IndexError, match=rf"{CASES[name][0]}: an index is not in"):
            called(library, feeds, LENGTH)


def test_what_places_read_is_computed_as_far_as_it_counts(library):
    kernels = library[-1]
    assert any("matmul" in name and "counted" in name for name in kernels), kernels
    assert sum(name.startswith("places") for name in kernels) == len(CASES), kernels
