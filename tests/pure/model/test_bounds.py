"""A small file that asks for much is refused before it gets any of it."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.graphs import model, node, randn
from onnx import TensorProto, helper, numpy_helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.graph.graph import Graph
from ansor_deploy.model.onnx.bind import bind_shapes
from ansor_deploy.model.onnx.file import load

LOCAL = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
HALF = 1 << 29  # bytes


def bare(nodes, inputs, constants=None, functions=(), opset=17):
    """A model that nothing has looked at: to infer its shapes may take all that it asks for."""
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in [*inputs.items(), ("y", [None])]
    ]
    held = [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "test", ends[:-1], ends[-1:], held)
    versions = [helper.make_opsetid("", opset), LOCAL[1]]
    return helper.make_model(graph, opset_imports=versions, functions=functions, ir_version=9)


def of_constants(*nodes, **constants):
    """A model that computes with constants alone, and adds what comes of it to its input."""
    last = nodes[-1].output[0]
    end = [node("ReduceMax", last, "m", keepdims=0), node("Cast", "m", "f", to=1)]
    return bare([*nodes, *end, node("Add", "x f", "y")], {"x": [8]}, constants)


def doubled(times, between=None):
    """A constant of eight numbers, concatenated with itself or a copy so many times."""
    nodes, last = [], "c"
    for at in range(times):
        other = last
        if between:
            nodes.append(node(between, last, other := f"o{at}"))
        nodes.append(node("Concat", f"{last} {other}", f"d{at}", axis=0))
        last = f"d{at}"
    return of_constants(*nodes, c=np.ones(8, np.float32))


def called(depth, calls, last="end"):
    """Functions that each call the next one so often."""
    functions = []
    for at in range(depth):
        names = ["a", *(f"t{k}" for k in range(calls - 1)), "b"]
        ends = itertools.pairwise(names)
        op = last if at == depth - 1 else f"f{at + 1}"
        body = [helper.make_node(op, [a], [b], domain="local") for a, b in ends]
        functions.append(helper.make_function("local", f"f{at}", ["a"], ["b"], body, LOCAL))
    relu = helper.make_node("Relu", ["a"], ["b"])
    functions.append(helper.make_function("local", "end", ["a"], ["b"], [relu], LOCAL))
    start = helper.make_node("f0", ["x"], ["y"], domain="local")
    return bare([start], {"x": [8]}, functions=functions)


def looped(count, inner=None, weights=0):
    """A Loop of so many steps, with a Loop in each if `inner` is given."""
    body = [node("Relu", "s", "t") if inner is None else inner, node("Identity", "c", "d")]
    takes = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        helper.make_tensor_value_info("s", TensorProto.FLOAT, [8]),
    ]
    gives = [
        helper.make_tensor_value_info("d", TensorProto.BOOL, []),
        helper.make_tensor_value_info("t", TensorProto.FLOAT, [8]),
    ]
    held = [numpy_helper.from_array(np.ones(weights, np.float32), "w")] if weights else []
    graph = helper.make_graph(body, "body", takes, gives, held)
    outer = "s t" if inner is None and count < 0 else "x y"
    read, made = outer.split()
    return node("Loop", f"n - {read}", made, body=graph)


def nested_loops(steps, weights=0):
    """A loop of so many steps, with 2000 steps in each."""
    inner = looped(-1, weights=weights)
    for value in (*inner.attribute[0].g.input, *inner.attribute[0].g.output):
        value.name = f"inner_{value.name}"
    for each in inner.attribute[0].g.node:
        each.input[:] = [f"inner_{name}" for name in each.input]
        each.output[:] = [f"inner_{name}" for name in each.output]
    outer = looped(steps, inner)
    outer.input[0] = "m"
    return bare([outer], {"x": [8]}, {"n": np.array(2000), "m": np.array(steps)})


def chain(count):
    names = ["x", *(f"r{k}" for k in range(count - 1)), "y"]
    return bare([node("Relu", a, b) for a, b in itertools.pairwise(names)], {"x": [8]})


BIG = 1 << 28
# Models, and what is said of them; functions make those that would take every collection long.
BOMBS = {
    "concats": (doubled(28), "2**31 elements"),
    "fewer concats": (doubled(26), "of the model's constants alone"),
    "concats of copies": (doubled(26, "Neg"), "of the model's constants alone"),
    "expand": (
        of_constants(node("Expand", "c s", "d"), c=np.ones(1, np.float32), s=[BIG]),
        "of the model's constants alone",
    ),
    "tile": (
        of_constants(node("Tile", "c s", "d"), c=np.ones(1, np.float32), s=[BIG]),
        "of the model's constants alone",
    ),
    "pad": (
        of_constants(node("Pad", "c s", "d"), c=np.ones(1, np.float32), s=[0, BIG]),
        "of the model's constants alone",
    ),
    "range": (of_constants(node("Range", "a b c", "d"), a=0, b=BIG, c=1), "constants alone"),
    "filled": (of_constants(node("ConstantOfShape", "s", "d"), s=[BIG]), "more than 640 MiB"),
    "outer sum": (
        of_constants(node("Add", "a b", "d"), a=randn(0, 1 << 14, 1), b=randn(1, 1, 1 << 14)),
        "of the model's constants alone",
    ),
    "many of 16 MiB": (
        bare(
            [
                link
                for k in range(100)
                for link in (
                    node("Expand", "c s", f"e{k}"),
                    node("Add", f"e{k} {f'a{k - 1}' if k else 'x'}", f"a{k}" if k < 99 else "y"),
                )
            ],
            {"x": [1]},
            {"c": np.ones(1, np.float32), "s": [2**21 - 1]},
        ),
        "of the model's constants alone",
    ),
    "eye": (
        bare([node("EyeLike", "x", "e"), node("ReduceMax", "e", "y")], {"x": [1 << 15, 1 << 15]}),
        "of the model's constants alone",
    ),
    "resize": (
        of_constants(
            node("Resize", "c - s", "d"),
            c=np.ones((1, 1, 8), np.float32),
            s=np.array([1, 1, 1e8], np.float32),
        ),
        "of the model's constants alone",
    ),
    "resized input": (
        bare([node("Resize", "x - s", "y")], {"x": [1, 8]}, {"s": np.array([1, 1e8], np.float32)}),
        "of the model's constants alone",
    ),
    "Fourier transform": (
        bare([node("DFT", "x", "y", axis=1)], {"x": [1, 1 << 20, 1]}),
        "of the model's constants alone",
    ),
    "spectrogram": (
        bare([node("STFT", "x s - n", "y")], {"x": [1, 1 << 17, 1]}, {"s": 1 << 16, "n": 1 << 16}),
        "of the model's constants alone",
    ),
    "one hot": (
        bare(
            [node("Cast", "x", "i", to=7), node("OneHot", "i n v", "y")],
            {"x": [1]},
            {"n": BIG, "v": np.array([0, 1], np.float32)},
        ),
        "of the model's constants alone",
    ),
    "reversed": (
        bare([node("ReverseSequence", "x n", "y")], {"x": [BIG, 1]}, {"n": [1]}),
        "of the model's constants alone",
    ),
    "shape": (
        bare([node("Reshape", "x s", "y")], {"x": [8]}, {"s": [1] * 5000 + [8]}),
        "5001 dimensions",
    ),
    "axes": (
        bare([node("Unsqueeze", "x a", "y")], {"x": [8]}, {"a": list(range(5000))}),
        "5000 dimensions",
    ),
    "outputs": (
        bare([node("Split", "x", "y", num_outputs=10**9)], {"x": [8]}, opset=18),
        "has 1000000000 outputs",
    ),
    "constants of a loop": (nested_loops(2000, weights=1 << 18), "of the model's constants alone"),
    "functions": (called(30, 2), "more than 50000 nodes"),
    "functions in a circle": (called(3, 1, "f0"), "function 'f0' calls itself"),
    "deep functions": (lambda: called(3000, 1), "too deeply"),
    "nested loops": (nested_loops(20), "more than 50000 nodes"),
    "nodes": (lambda: chain(50_001), "more than 50000 nodes"),
    "dimension": (bare([node("Relu", "x", "y")], {"x": [2**31]}), "tensor 'x' of shape 2147483648"),
    "product": (bare([node("Relu", "x", "y")], {"x": [2**31 - 1] * 4}), "2**31 elements or more"),
    "inner tensor": (
        bare([node("Tile", "x s", "d"), node("ReduceMax", "d", "y")], {"x": [8]}, {"s": [2**60]}),
        "node 'd' (Tile): Integer overflow",
    ),
    "rank": (bare([node("Relu", "x", "y")], {"x": [1] * 9999}), "9999 dimensions"),
    "inputs of a node": (
        bare([node("Concat", "x " * 99_999, "y", axis=0)], {"x": [8]}),
        "more than 4096 inputs",
    ),
    "attribute": (
        lambda: bare([node("Transpose", "x", "y", perm=range(2_000_000))], {"x": [8]}),
        "attribute 'perm' has 2000000 values",
    ),
    "name of an input": (
        bare([node("Relu", "x" * 5000, "y")], {"x" * 5000: [8]}),
        "too long: 5000 letters",
    ),
    "name of a size": (
        bare([node("Relu", "x", "y")], {"x": ["n" * 5000]}),
        "too long: 5000 letters",
    ),
}
SCRIPT = """
import resource, sys
from pathlib import Path
from ansor_deploy.errors import ModelError
from ansor_deploy.model.onnx.bind import bind_shapes
from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.onnx.file import load
from ansor_deploy.model.operators.support import refuse_early
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
for name in sys.argv[2:]:
    try:
        proto = load(Path(name)).proto
        refuse_early(proto)
        canonical_graph(bind_shapes(proto, {}))
        print("compiled")
    except ModelError as error:
        print(" ".join(error.message.split()))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What is said of each model, by a process that may take half a gigabyte for them."""
    folder = tmp_path_factory.mktemp("bombs")
    files = [folder / f"{name}.onnx".replace(" ", "-") for name in BOMBS]
    for file, (proto, _) in zip(files, BOMBS.values(), strict=True):
        file.write_bytes((proto() if callable(proto) else proto).SerializeToString())
    words = [sys.executable, "-c", SCRIPT, str(HALF), *map(str, files)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(zip(BOMBS, done.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_asks_for_much_is_refused(said, name):
    assert said[name] != "compiled"
    assert BOMBS[name][1] in said[name]


def written(tmp_path: Path, proto) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def test_what_networks_have_is_not(tmp_path):
    """Half the nodes, and functions that are written out thousands of times."""
    assert len(load(written(tmp_path, chain(25_000))).proto.graph.node) == 25_000
    proto = load(written(tmp_path, called(12, 2))).proto
    assert len(canonical_graph(proto).output_names) == 1


def test_weights_may_be_computed_of_shorter_ones():
    """int8 weights become floats, and each step's result goes with the last node that reads it."""
    weights = np.random.default_rng(0).integers(-9, 9, (1 << 12, 1 << 12), np.int8)
    nodes = [node("Cast", "w", "f0", to=1)]
    nodes += [node("Neg", f"f{k}", f"f{k + 1}") for k in range(9)]
    nodes += [node("MatMul", "x f9", "y")]
    graph = canonical_graph(model(nodes, {"x": (1, 1 << 12)}, constants={"w": weights}))
    assert [n.op_type for n in graph.nodes] == ["MatMul"]
    assert len(graph.constants) == 1


def test_names_are_the_same_however_many_there_are():
    graph = Graph.of(model([node("Relu", "x", "y_2")], {"x": (4,)}, ("y_2",)))
    assert [graph.fresh("y") for _ in range(3)] == ["y_1", "y_3", "y_4"]


def test_loops_of_many_steps_are_refused_by_their_own_limit():
    proto = bare([looped(1)], {"x": [8]}, {"n": np.array(10**9)})
    with pytest.raises(ModelError, match="20000 are compiled at most"):
        canonical_graph(proto)


def test_a_shape_that_is_asked_for():
    proto = model([node("Relu", "x", "y")], {"x": ("n",)})
    with pytest.raises(ModelError, match=r"tensor 'x' of shape 1{20} is too large"):
        bind_shapes(proto, {"x": (int("1" * 20),)})
