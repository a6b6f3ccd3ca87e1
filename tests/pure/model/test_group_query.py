"""GroupQueryAttention becomes operators with which ONNX Runtime computes the same."""

import numpy as np
import pytest
from helpers.graphs import node, randn, run, typed
from onnx import TensorProto, helper, numpy_helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonicalize

HEADS, SHARED, WIDTH, LONGEST = 4, 2, 32, 40
INPUTS = ("q", "k", "v", "pk", "pv", "n", "t", "c", "s", "p", "b", "sink")


def decoder(tokens, past, batch=1, total=None, left_out=(), packed=False, **attributes):
    """(a model of one node, its inputs): so many tokens after a past of so many, all of it full.

    left_out: names of inputs. total: of the keys; the past may be longer than that leaves.
    """
    total = total or past + tokens
    hidden = {"q": HEADS * WIDTH, "k": SHARED * WIDTH, "v": SHARED * WIDTH}
    hidden = {"q": sum(hidden.values())} if packed else hidden
    given = {name: randn(at, batch, tokens, size) for at, (name, size) in enumerate(hidden.items())}
    if past:
        given |= {name: randn(at, batch, SHARED, past, WIDTH)
                  for at, name in enumerate(("pk", "pv"), 5)}  # fmt: skip
    given["n"] = np.full(batch, total - 1, np.int32)
    angles = np.arange(LONGEST)[:, None] * 0.9 ** np.arange(attributes.pop("turned", WIDTH) // 2)
    constants = {"t": np.array(total, np.int32)}
    constants |= {"c": np.cos(angles).astype(np.float32), "s": np.sin(angles).astype(np.float32)}
    constants |= {"b": randn(9, 1, HEADS, tokens, total), "sink": randn(8, HEADS)}
    constants = {name: value for name, value in constants.items() if name not in left_out}
    made = node("GroupQueryAttention", words({*given, *constants}), "y nk nv", num_heads=HEADS,
                kv_num_heads=SHARED, **attributes)  # fmt: skip
    made.domain = "com.microsoft"
    return of(made, given, constants), given


def words(names):
    """The inputs of the node, those that there are not as such."""
    return " ".join(name if name in names else "-" for name in INPUTS)


def of(made, given, constants):
    return typed([made], given, dict.fromkeys(("y", "nk", "nv"), "float32"), constants)


def assert_alike(proto, feeds):
    after = canonicalize(proto)
    assert {entry.domain for entry in after.graph.node} == {""}
    for want, have in zip(run(proto, feeds), run(after, feeds), strict=True):
        assert (want.shape, want.dtype) == (have.shape, have.dtype)
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


PLAIN = ("b", "sink")
CALLS = [(5, 0), (1, 7), (3, 7)]


@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"packed": True, "do_rotary": 1},
        {"do_rotary": 1, "rotary_interleaved": 1},
        {"do_rotary": 1, "turned": 16},
        {"local_window_size": 3, "scale": 0.3},
        {"softcap": 2.0},
        {"smooth_softmax": 1},
    ],
    ids=str,
)
def test_attention_to_a_cache(calls, attributes):
    assert_alike(*decoder(*calls, left_out=PLAIN, **attributes))


@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("left_out", [("b",), ("sink",)])
def test_attention_with_a_bias_or_a_sink(calls, left_out):
    assert_alike(*decoder(*calls, left_out=left_out, softcap=3.0))


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("total", [8, 6])
def test_samples_whose_caches_are_filled_to_different_ends(batch, total):
    proto, feeds = decoder(1, 7, batch, total=total, left_out=PLAIN, do_rotary=1)
    assert_alike(proto, feeds | {"n": np.array([3, 5, 0][:batch], np.int32)})


def test_first_tokens_into_a_longer_cache():
    assert_alike(*decoder(5, 9, total=5, left_out=PLAIN, do_rotary=1))
    proto, feeds = decoder(3, 9, left_out=PLAIN, do_rotary=1)
    assert_alike(proto, feeds | {"n": np.array([2], np.int32)})


@pytest.mark.parametrize(
    "attributes", [{}, {"local_window_size": 2}, {"smooth_softmax": 1}], ids=str
)
def test_fewer_first_tokens_of_some_samples(attributes):
    """Rows behind the last token of a sample are what ONNX Runtime makes of them as well."""
    proto, feeds = decoder(5, 0, 3, left_out=PLAIN, **attributes)
    assert_alike(proto, feeds | {"n": np.array([4, 1, 0], np.int32)})


@pytest.mark.parametrize("calls", CALLS)
def test_tokens_at_positions_that_are_given(calls):
    proto, feeds = decoder(*calls, left_out=PLAIN, do_rotary=1, local_window_size=4)
    places = np.arange(calls[0])[None] + 11
    proto.graph.initializer.append(numpy_helper.from_array(places, "p"))
    proto.graph.node[0].input[9] = "p"
    assert_alike(proto, feeds)


@pytest.mark.parametrize("filled", [5, 3])
def test_attention_in_both_directions(filled):
    proto, feeds = decoder(5, 0, batch=2, left_out=PLAIN, causal=0)
    assert_alike(proto, feeds | {"n": np.array([4, filled - 1], np.int32)})


def test_what_is_refused():
    with pytest.raises(ModelError, match="give batch or tokens the size 1"):
        canonicalize(decoder(3, 7, 2, left_out=PLAIN)[0])
    with pytest.raises(ModelError, match="sliding_window_cache"):
        canonicalize(decoder(1, 7, left_out=PLAIN, sliding_window_cache=1)[0])
    proto, _ = decoder(1, 7, left_out=(*PLAIN, "t"))
    proto.graph.node[0].input[6] = "t"
    proto.graph.input.append(helper.make_tensor_value_info("t", TensorProto.INT32, []))
    with pytest.raises(ModelError, match="must follow from the shapes of inputs"):
        canonicalize(proto)
