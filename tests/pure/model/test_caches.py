"""The caches of a model are found by the nodes that make them; what grows with them stays open."""

from functools import partial

import numpy as np
import pytest
from helpers.decoders import TINY, llama
from helpers.graphs import contrib, dense, model, node, randn, run, typed
from onnx import TensorProto

from ansor_deploy.errors import ModelError
from ansor_deploy.model.caches import Opened, assumed_rows, found_caches
from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.counted import caches
from ansor_deploy.model.graph import fold
from ansor_deploy.model.onnx.sizes import proposals
from ansor_deploy.runtime.context import Counted


def opened(proto, rows=16, **given):
    return Opened.of(proto, given, rows)


def appending(past, new):
    nodes = [node("Relu", "x", "n"), node("Concat", "past n", "present", axis=2)]
    nodes.append(node("MatMul", "q present", "y"))
    inputs = {"x": new, "q": (1, 2, 4, 4), "past": past}
    return model(nodes, inputs, ("y", "present"))


def test_caches_are_told_by_what_makes_them():
    proto = llama(**TINY)
    for value in (*proto.graph.input, *proto.graph.output):
        assert value.name.startswith(("past", "present", "input", "attention", "position", "log"))
    found = [(one.input, one.output, one.axis, one.at) for one in found_caches(proto)]
    assert found == [
        ("past.0.key", "present.0.key", 2, 1),
        ("past.0.value", "present.0.value", 2, 2),
    ]


def test_all_that_grows_with_them_stays_open():
    whole = opened(llama(**TINY))
    assert whole.context.counted == (Counted("attention_mask", 1, 1),)
    assert (whole.context.rows, whole.context.tokens) == (16, 1)
    shapes = {v.name: v.type.tensor_type.shape for v in whole.bound(5).graph.input}
    assert [dim.dim_value for dim in shapes["attention_mask"].dim] == [1, 6]
    assert [dim.dim_value for dim in shapes["past.0.key"].dim] == [1, 2, 5, 8]


def test_a_step_adds_what_inference_says():
    assert opened(appending((1, 2, "p", 4), (1, 2, 3, 4))).context.tokens == 3
    assert opened(appending((1, 2, "p", 4), (1, 2, "n", 4)), x=(1, 2, 5, 4)).context.tokens == 5


def test_rows_that_nobody_gives_are_as_many_as_is_usual_or_as_there_are_positions(monkeypatch):
    proto = llama(**TINY)
    assert assumed_rows(proto, {}) == 1024
    assert assumed_rows(proto, dict.fromkeys(("past.0.key", "past.0.value"), (1, 2, 5, 8))) == 0
    assert assumed_rows(appending((1, 2, 3, 4), (1, 2, 1, 4)), {}) == 0  # none is open
    nodes = [node("Concat", "past x", "present", axis=2), node("Mul", "present p", "y"),
             node("Shape", "present", "rows", start=2, end=3), node("Sub", "two one", "unit"),
             node("Sub", "rows unit", "last"), node("Gather", "positions last", "p")]  # fmt: skip
    inputs = {"x": (1, 2, 1, 4), "past": (1, 2, "p", 4)}
    constants = {"one": np.array([1]), "two": np.array([2]), "positions": randn(0, 77, 1)}
    proto = model(nodes, inputs, ("y", "present"), constants=constants)
    made, evaluate = [], fold._evaluate
    monkeypatch.setattr(fold, "_evaluate", lambda *given: made.append(given[1]) or evaluate(*given))
    assert assumed_rows(proto, {}) == 77
    # While ten numbers of rows are tried, what none of them changes is not computed again.
    assert [node.output[0] for node in made].count("unit") <= 4


def test_rows_are_at_most_those_of_a_table_whose_last_are_read():
    """As MPT's distances are: of one row more than there are, its table has one for all rows."""
    nodes = [node("Concat", "past x", "present", axis=2),
             node("Shape", "present", "rows", start=2, end=3), node("Sub", "room rows", "first"),
             node("Slice", "table first end axis", "last"),
             node("Add", "present last", "y")]  # fmt: skip
    inputs = {"x": (1, 2, 1, 4), "past": (1, 2, "p", 4)}
    constants = {"room": np.array([50]), "end": np.array([99]), "axis": np.array([2])}
    constants["table"] = randn(0, 1, 1, 50, 1)
    assert assumed_rows(model(nodes, inputs, ("y", "present"), constants=constants), {}) == 50


def test_rows_are_at_most_the_positions_that_an_attention_has_angles_for():
    """ONNX Runtime runs nothing beyond them."""
    constants = {name: randn(0, 40, 4) for name in ("cos", "sin")}
    constants |= {"counts": np.zeros(1, np.int32), "total": np.array(1, np.int32)}
    read = "x x x pk pv counts total cos sin"
    heads = {"num_heads": 2, "kv_num_heads": 2, "do_rotary": 1}
    made = contrib("GroupQueryAttention", read, "y nk nv", **heads)
    given = {"x": ("float32", (1, 1, 16))}
    given |= dict.fromkeys(("pk", "pv"), ("float32", (1, 2, "past", 8)))
    proto = typed([made], given, dict.fromkeys(("y", "nk", "nv"), "float32"), constants, 21)
    assert assumed_rows(proto, {}) == 40
    with pytest.raises(ModelError, match="angles for 40 places") as raised:
        opened(proto, 41)
    assert "--context 40" in raised.value.hint


def test_sizes_that_a_file_names_apart_are_one_where_the_caches_grow():
    proto = with_names_of_their_own(llama(**TINY))
    assert assumed_rows(proto, {}) == 1024
    whole = opened(proto)
    assert whole.context.counted == (Counted("attention_mask", 1, 1),)
    shapes = {v.name: v.type.tensor_type.shape for v in whole.bound(5).graph.input}
    assert [dim.dim_value for dim in shapes["past.0.value"].dim] == [1, 2, 5, 8]
    assert [dim.dim_value for dim in shapes["attention_mask"].dim] == [1, 6]
    mask = {"attention_mask": (1, 16)}
    assert not opened(with_names_of_their_own(llama(**TINY)), **mask).context.counted


def with_names_of_their_own(proto):
    """The model as it is exported with axes that have no names."""
    for value in proto.graph.input:
        for at, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_param:
                dim.dim_param = f"{value.name}_dynamic_axes_{at}"
    return proto


@pytest.mark.parametrize(("op", "words"), [("Identity", {}), ("Cast", {"to": TensorProto.FLOAT})])
def test_copies_of_a_cache_are_the_cache(op, words):
    copies = [node("Concat", "past", "one", axis=2), node(op, "one", "same", **words)]
    made = [node("Concat", "same x", "all", axis=2), node(op, "all", "present", **words)]
    nodes = [*copies, *made, node("Shape", "one", "rows"), node("ReduceSum", "all", "y")]
    inputs = {"x": (1, 2, 1, 4), "past": (1, 2, "p", 4)}
    graph = kept(model(nodes, inputs, ("y", "present", "rows")), 16)
    assert [one.input for one in graph.context.caches] == ["past"]
    assert [node.op_type for node in graph.nodes if "past" in node.input] == ["Append"]


def test_keys_are_turned_whose_heads_are_samples_meanwhile():
    """So torch's newer exporter turns them, and it scales them as well as the queries."""
    nodes = [node("Concat", "past x", "present", axis=2), node("Reshape", "present one", "m"),
             node("Transpose", "m", "t", perm=[0, 2, 1]), node("Reshape", "t two", "k"),
             node("Mul", "k half", "s"), node("MatMul", "x s", "y")]  # fmt: skip
    constants = {"one": np.array([2, -1, 4]), "two": np.array([1, 2, 4, -1]), "half": randn(1)}
    inputs = {"x": (1, 2, 1, 4), "past": (1, 2, "p", 4)}
    graph = kept(model(nodes, inputs, ("y", "present"), constants), 16)
    assert [one.order for one in graph.context.caches] == [(0, 1, 3, 2)]
    made, (scale,) = graph.producers(), (one for one in graph.nodes if one.op_type == "Mul")
    assert graph.shapes[made["y"].input[1]] == (1, 2, 4, 16)
    assert made["y"].input[0] == scale.output[0]


def test_keys_lie_as_their_product_reads_them_and_are_not_spread_over_heads():
    graph = kept(llama(**TINY), 16)
    orders = {one.input: one.order for one in graph.context.caches}
    assert orders == {"past.0.key": (0, 1, 3, 2), "past.0.value": ()}
    assert graph.shapes["past.0.key"] == (1, 2, 8, 16)
    assert [value.name for value in graph.proto.graph.output] == ["logits"]
    written = [node.output[0] for node in graph.nodes if node.op_type == "Append"]
    read = [name for node in graph.nodes if node.op_type == "MatMul" for name in node.input]
    assert set(written) <= set(read)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_heads_that_share_keys_give_the_same_numbers(heads):
    nodes = [
        node("Unsqueeze", "k two", "wide"),
        node("Expand", "wide form", "spread"),
        node("Reshape", "spread flat", "all"),
        node("Mul", "all half", "scaled"),
        node("Transpose", "scaled", "turned", perm=[0, 1, 3, 2]),
        node("MatMul", "q turned", "y"),
    ]
    constants = {"two": [2], "form": [1, 1, heads, 1, 1], "flat": [1, 2 * heads, -1, 8]}
    inputs = {"q": (1, 2 * heads, 3, 8), "k": (1, 2, 5, 8)}
    proto = model(nodes, inputs, constants={**constants, "half": randn(1)})
    graph = canonical_graph(proto)
    feeds = {"q": randn(0, *inputs["q"]), "k": randn(1, *inputs["k"])}
    (want,), (have,) = run(proto, feeds), run(graph.to_proto(), feeds)
    assert abs(want - have).max() < 1e-5
    assert all(node.op_type != "Expand" for node in graph.nodes)


def refused(proto, rows=16):
    with pytest.raises(ModelError) as caught:
        kept(proto, rows)
    return caught.value.text


def kept(proto, rows):
    whole = opened(proto, rows)
    return canonical_graph(whole.opened(), partial(caches.prepare, context=whole.context))


def test_what_has_no_such_cache_is_refused():
    assert "no caches to keep" in refused(dense(4, 4))
    assert "is not one open size with one name" in refused(appending((1, 2, 3, 4), (1, 2, 1, 4)))
    assert "too small for a model that adds 1 in a step" in refused(llama(**TINY), rows=1)


def test_a_cache_is_as_wide_as_the_rotary_table_says():
    rotate = node("RotaryEmbedding", "k ids cos sin", "r")
    rotate.domain = "com.microsoft"
    nodes = [rotate, node("Concat", "past.0.key r", "y", axis=2)]
    inputs = {"k": (1, 4, 1, 12), "ids": (1, 1), "past.0.key": (1, 4, "past", "width")}
    tables = {name: randn(at, 32, 6) for at, name in enumerate(("cos", "sin"))}
    proto = model(nodes, inputs, constants=tables)
    assert next(proposals(proto, {})) == {"past.0.key": (1, 4, 127, 12)}
