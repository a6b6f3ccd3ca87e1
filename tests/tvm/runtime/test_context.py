"""A library that keeps a decoder's caches: steps are those of the model with growing ones."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from helpers import graphs
from helpers.c_programs import SANITIZED, compiled
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.decoders import EXAMPLES, TINY, Growing, llama

from ansor_deploy.errors import UsageError
from ansor_deploy.runtime import load
from benchmarks.networks.decoding import command

HERE, ROWS = Path(__file__).parent, 80


@pytest.fixture(scope="module")
def proto():
    return llama(**TINY)


@pytest.fixture(scope="module")
def shop(tmp_path_factory, proto):
    """A folder with a library, which the build verified at three lengths."""
    folder = tmp_path_factory.mktemp("shop")
    onnx.save(proto, folder / "llama.onnx")
    built = answer(folder, "build", "llama.onnx", "--trials", 0, "--context", ROWS, "--header")
    assert built["verify"]["ok"]
    return folder


@pytest.fixture
def decoder(shop):
    return load(shop / "llama.so")


@pytest.fixture
def growing(proto):
    return Growing(proto)


def assert_close(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def assert_steps_alike(decoder, growing, *tokens):
    for token in tokens:
        feed = growing.feed(token)
        assert_close(decoder.decode(**feed)["logits"], growing(**feed)["logits"])


def test_a_chain_of_steps_is_that_of_growing_caches(decoder, growing):
    assert_steps_alike(decoder, growing, *(n % 50 for n in range(ROWS)))
    assert decoder.length == ROWS
    for name, rows in decoder.caches().items():
        assert_close(rows, growing.caches[name])


def test_attentions_add_rows_to_caches_of_theirs(tmp_path):
    other = graphs.node(
        "MultiHeadAttention", "t t t - - - pk pv", "y", num_heads=2, unidirectional=1
    )
    other.domain = "com.microsoft"
    other.output[:] = ["y", "nk", "nv"]
    own = graphs.node("Attention", "q k v mask ok ov", "x", is_causal=1)
    own.output[:] = ["x", "mk", "mv"]
    cache = (1, 2, "past", 8)
    inputs = {"t": (1, 3, 16), "pk": cache, "pv": cache, "ok": cache, "ov": cache}
    inputs |= {"q": (1, 4, 3, 8), "k": (1, 2, 3, 8), "v": (1, 2, 3, 8), "mask": (3, "past + 3")}
    proto = graphs.model([own], inputs, ("x", "mk", "mv"), opset=23)
    proto.graph.node.append(other)
    kinds = [onnx.helper.make_tensor_value_info(n, 1, None) for n in other.output]
    proto.graph.output.extend(kinds)
    proto.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    onnx.save(proto, tmp_path / "two.onnx")
    built = answer(tmp_path, "build", "two.onnx", "--trials", 0, "--context", 12)
    assert built["verify"]["ok"]
    assert set(load(tmp_path / "two.so").caches()) == {"pk", "pv", "ok", "ov"}


def test_a_full_context_says_so_and_stays_as_it_is(decoder, growing):
    assert_steps_alike(decoder, growing, *(n % 50 for n in range(ROWS)))
    with pytest.raises(UsageError, match="full: 80 of 80 rows count, and a step adds 1") as caught:
        decoder.decode(**growing.feed(1))
    assert "--context" in caught.value.hint
    assert decoder.length == ROWS


def test_what_was_forgotten_leaves_nothing_behind(decoder, growing):
    for token in (1, 2, 3):
        decoder.decode(**growing.feed(token))
        growing(**growing.feed(token))
    decoder.truncate(1)
    growing.caches = {name: one[:, :, :1] for name, one in growing.caches.items()}
    assert_steps_alike(decoder, growing, 7, 8)
    decoder.truncate()
    assert_steps_alike(decoder, Growing(llama(**TINY)), 4, 5)
    with pytest.raises(UsageError, match="it cannot keep 9 rows: 2 count"):
        decoder.truncate(9)


def test_caches_go_from_one_library_to_another(shop, decoder, growing):
    assert_steps_alike(decoder, growing, 1, 2, 3)
    other = load(shop / "llama.so")
    other.resume(**decoder.caches())
    assert_steps_alike(other, growing, 4, 5)
    with pytest.raises(UsageError, match=r"past\.0\.key: float32\[1, 2, 90, 8\] given"):
        other.resume(**{name: np.zeros((1, 2, 90, 8), np.float32) for name in decoder.caches()})


def test_it_is_called_as_the_model_with_caches_of_any_length(decoder, growing):
    decoder.decode(**growing.feed(9))
    for token in (3, 1, 4):
        feed = {**growing.feed(token), **growing.caches}
        expected, made = growing(**growing.feed(token)), decoder(**feed)
        assert list(made) == list(expected)
        for name, one in made.items():
            assert_close(one, expected[name])
    assert decoder.length == 1  # calls leave its own caches alone


def test_a_step_is_checked(decoder, growing):
    feed = {**growing.feed(1), "attention_mask": np.ones((1, 4), np.int64)}
    with pytest.raises(UsageError, match=r"attention_mask: int64\[1, 4\] given"):
        decoder.decode(**feed)
    with pytest.raises(UsageError, match="no such input"):
        decoder.decode(**growing.feed(1), **growing.caches)


def test_no_step_copies_a_cache(shop):
    kernels = json.loads((shop / "llama.json").read_text())["kernels"]
    names = [one["name"] for one in kernels]
    assert any(name.startswith("append") for name in names)
    assert not any(word in name for name in names for word in ("concatenate_1x2", "broadcast"))
    assert "transpose" not in names


def test_other_libraries_have_no_context(shop):
    onnx.save(graphs.dense(4, 4), shop / "plain.onnx")
    answer(shop, "build", "plain.onnx", "--trials", 0, "--no-verify", "--beside", "none")
    model = load(shop / "plain.so")
    for step in (lambda: model.decode(x=graphs.randn(0, 8, 4)), model.truncate, model.caches):
        with pytest.raises(UsageError, match="it has no context") as caught:
            step()
        assert "--context" in caught.value.hint


def test_a_model_whose_past_is_left_open_gets_a_usual_context(shop, growing):
    words = ("--trials", 0, "--no-verify", "--beside", "none")
    answer(shop, "build", "llama.onnx", "-o", "x.so", *words)
    manifest = json.loads((shop / "x.json").read_text("utf-8"))
    assert manifest["context"]["rows"] == 1024
    assert_steps_alike(load(shop / "x.so"), growing, 7, 3)


@pytest.mark.slow
def test_its_nodes_are_verified_one_by_one(shop):
    told = answer(shop, "verify", "llama.so", "llama.onnx", "--by-node")
    assert all(one["ok"] for one in told["nodes"])


def test_a_context_of_several_shapes_is_refused(shop):
    shapes = ("--input-shape", "input_ids=1,1", "--input-shape", "input_ids=2,1")
    refused(program(shop, "build", "llama.onnx", "--context", 8, *shapes), 2, "one shape")


def test_a_model_without_caches_is_refused(shop):
    words = ("build", "plain.onnx", "--context", 8, "-o", "kept.so")
    refused(program(shop, *words), 3, "the model has no caches to keep", "--context")
    assert not (shop / "kept.so").exists()


STEPS, PROMPT = "4", ("3", "1", "4")


@pytest.fixture(scope="module")
def chosen(proto):
    """The likeliest tokens behind the prompt, by growing caches."""
    growing, tokens = Growing(proto), [*map(int, PROMPT)]
    for place in range(len(PROMPT) + int(STEPS) - 1):
        logits = growing(**growing.feed(tokens[place]))["logits"]
        if place + 1 == len(tokens):
            tokens.append(int(logits.argmax()))
    return [*map(str, tokens)]


def run(*words):
    return subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)


def test_the_example_in_python_goes_on_from_a_prompt(shop, chosen):
    words = (EXAMPLES / "decode.py", shop / "llama.so", *PROMPT, "--steps", STEPS)
    assert run(sys.executable, *words).stdout.split() == chosen


def test_the_example_in_c_does_and_stops_at_a_full_context(shop, chosen):
    made = compiled(shop, "gcc", "-std=c99", EXAMPLES / "decode.c")
    assert run(made, shop / "llama.so", STEPS, *PROMPT).stdout.split() == chosen
    full = run(made, shop / "llama.so", ROWS, *PROMPT)
    assert full.returncode == 1
    assert full.stderr.strip().endswith(
        "its context is full: 80 of 80 rows count, and a step adds 1"
    )


def test_caches_in_c_are_forgotten_and_handed_out(shop, growing):
    made = compiled(shop, "gcc", "-std=c99", *SANITIZED, HERE / "run_context.c")
    for token in (5, 6):
        want = growing(**growing.feed(token))
    done = run(made, shop / "llama.so")
    assert done.returncode == 0, done.stderr
    logits, keys, *errors = done.stdout.splitlines()
    assert_close(np.array(logits.split(), np.float32), want["logits"].ravel())
    turned = growing.caches["past.0.key"].transpose(0, 1, 3, 2)[0, 0, 0]
    assert_close(np.array(keys.split(), np.float32), turned)
    library = shop / "llama.so"
    assert errors == [
        f"{library}: attention_mask is int64, 24 bytes; given int64, 8 bytes",
        f"{library}: it cannot keep 9 rows: 2 count",
        f"{library}: input_ids is no cache",
    ]


def test_the_benchmark_times_steps_beside_onnx_runtime(shop):
    words = [str(shop / "llama.onnx"), str(shop / "llama.so"), "--lengths", "2,40", "--runs", "2"]
    shown = CliRunner().invoke(command, words)
    assert shown.exit_code == 0, shown.output
    rows = [line.split("|")[1:4] for line in shown.stdout.splitlines()[2:]]
    assert [(row[0].strip(), row[2].strip()) for row in rows] == [
        (length, who) for length in ("2", "40") for who in ("ours", "ONNX Runtime")
    ]
