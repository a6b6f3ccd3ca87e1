"""A model with what cannot be compiled is refused by name, before TVM is imported."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import numpy as np
import onnx
import pytest
from helpers.graphs import either, model, node
from onnx import TensorProto, helper, numpy_helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model import operators
from ansor_deploy.model.canonicalize import canonicalize
from ansor_deploy.model.graph.graph import Graph
from ansor_deploy.model.operators.support import refuse, refuse_early
from ansor_deploy.model.operators.table import FAMILIES, OPERATORS

ROOT = Path(__file__).resolve().parents[3]


def refused(proto, check=canonicalize):
    with pytest.raises(ModelError) as caught:
        check(proto)
    assert caught.value.exit_code == 3
    assert caught.value.hint
    return caught.value.text


def custom(*nodes, inputs=("x",), kind=TensorProto.FLOAT):
    """A model that may hold anything, its tensors of four numbers."""
    values = [helper.make_tensor_value_info(name, kind, (4,)) for name in inputs]
    graph = helper.make_graph(nodes, "g", values, [helper.make_empty_tensor_value_info("y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_every_node_is_listed_with_its_domain_opset_and_reason():
    text = refused(
        custom(
            helper.make_node("RandomNormalLike", ["x"], ["a"], name="noise"),
            helper.make_node("Frobnicate", ["a"], ["b"], domain="local"),
            helper.make_node("Relu", ["b"], ["y"], domain="local", name="namesake"),
        ),
        refuse_early,
    )
    assert "3 unsupported operator(s)" in text
    assert "RandomNormalLike  at node noise  (ai.onnx 17): random numbers are drawn from" in text
    assert "Frobnicate  at node b  (local 3): not supported" in text
    assert "Relu  at node namesake  (local 3)" in text


def test_many_nodes_of_an_operator_are_counted():
    nodes = [helper.make_node("Frobnicate", ["x"], [f"b{at}"], domain="local") for at in range(40)]
    text = refused(custom(*nodes, node("Sum", " ".join(f"b{at}" for at in range(40)), "y")))
    assert "1 unsupported operator(s)" in text
    assert text.endswith("at node b3  (local 3): not supported\n  and 36 more like it")


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        ("MatMulFpQ4", "quantise them to MatMulNBits"),
        ("QMoE", "choose a dense model"),
        ("PackedAttention", "without options for GPUs"),
        ("BeamSearch", "build the decoder that it calls"),
    ],
)
def test_operators_of_language_models_are_refused_in_words(op, reason):
    proto = custom(helper.make_node(op, ["x"], ["y"], domain="com.microsoft"))
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    assert reason in refused(proto, refuse_early)


def test_a_map_is_refused_in_words():
    words = {"domain": "ai.onnx.ml", "classlabels_int64s": [0, 1, 2, 3]}
    proto = custom(helper.make_node("ZipMap", ["x"], ["y"], **words))
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    proto.graph.output[0].type.CopyFrom(
        helper.make_sequence_type_proto(helper.make_map_type_proto(TensorProto.INT64, kind))
    )
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    assert "make tensors the outputs" in refused(proto, refuse_early)


def test_a_file_for_one_processor_is_refused_in_words():
    proto = custom(helper.make_node("Conv", ["x"], ["y"], domain="com.microsoft.nchwc"))
    proto.opset_import.append(helper.make_opsetid("com.microsoft.nchwc", 1))
    assert "save it with ORT_ENABLE_EXTENDED" in refused(proto, refuse_early)


def test_the_shapes_of_the_inputs_need_not_be_known():
    proto = model(
        [node("Relu", "x", "h"), node("RandomNormalLike", "h", "y")], {"x": ("n", "m", "m")}
    )
    assert "RandomNormalLike  at node y  (ai.onnx 17)" in refused(proto, refuse_early)


def test_what_no_output_needs_may_be_anything():
    proto = model([node("RandomNormalLike", "x", "unused"), node("Relu", "x", "y")], {"x": (3, 3)})
    refuse_early(proto)
    canonicalize(proto)


@pytest.mark.parametrize(
    ("inside", "says"),
    [
        (node("RandomUniformLike", "x", "b"), "RandomUniformLike  at node b"),
        (node("Dropout", "x - yes", "b"), "that a run chooses trains it"),
        (node("Resize", "x - one", "b"), "that a run chooses holds it"),
    ],
)
def test_a_branch_is_looked_into(inside, says):
    proto = custom(
        helper.make_node("Constant", [], ["one"], value_floats=[1.0]),
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["yes"], to=TensorProto.BOOL),
        either("yes", "y", [inside], [node("Neg", "x", "b")], kind=None),
    )
    assert says in refused(proto)


def test_a_type_is_named():
    proto = custom(helper.make_node("Identity", ["x"], ["y"]), kind=TensorProto.STRING)
    assert "Identity  at node y  (ai.onnx 17): not supported in string" in refused(proto)


def test_an_input_that_must_be_constant_is_named():
    nodes = [node("Cast", "x", "n", to=TensorProto.INT64), node("Expand", "w n", "y")]
    proto = model(nodes, {"x": (2,)}, constants={"w": np.ones((1, 1), np.float32)})
    refuse_early(proto)
    assert "Expand  at node y  (ai.onnx 17): its input 'n' must be a constant" in refused(proto)


def finder(at, failing):
    """Nodes that find the larger elements of x, and fill as many numbers."""
    made = [node("NonZero", "x", f"found{at}"), node("Shape", f"found{at}", f"size{at}")]
    return [*made, node("ConstantOfShape", f"size{at}", failing)]


def test_what_follows_from_data_of_any_size_is_one_line():
    nodes = [*finder(0, "a"), *finder(1, "b"), node("Concat", "a b", "y", axis=1)]
    proto = model(nodes, {"x": (2, 3)})
    refuse_early(proto)
    graph = Graph.of(proto)
    graph.infer()
    with pytest.raises(ModelError) as caught:
        refuse(graph)
    text = caught.value.text
    assert text.count("\n") == 1
    assert text.endswith(
        "NonZero  at node found0  (ai.onnx 17): as at 1 more, the input's values decide how much "
        "it finds, and sizes for ConstantOfShape are computed of that"
    )


def test_what_counts_is_named_where_nothing_is_compiled_for_its_result():
    nodes = [node("NonZero", "x", "found"), node("Cast", "found", "f", to=1)]
    proto = model([*nodes, node("Det", "f", "y")], {"x": (2, 3)})
    refuse_early(proto)
    assert "node 'y' (Det): a run decides how much it reads, by what NonZero 'found' finds" in (
        refused(proto)
    )


def test_what_counts_in_a_branch_is_named_with_its_if():
    finds = [node("NonZero", "x", "n"), node("Transpose", "n", "t", perm=[1, 0])]
    none = [node("Identity", "nothing", "e")]
    nodes = [
        node("ReduceMax", "x", "most", keepdims=0),
        node("Cast", "most", "some", to=TensorProto.BOOL),
        either("some", "kept", finds, none, kind=("int64", ("k", 2))),
        node("Cast", "kept", "f", to=1),
        node("Hardmax", "f", "y", axis=0),
    ]
    proto = model(nodes, {"x": (2, 3)}, constants={"nothing": np.zeros((0, 2), np.int64)})
    assert "by what NonZero 'n' inside If 'kept' finds" in refused(proto)


def test_branches_of_other_ranks_are_named_by_their_if():
    boxes = helper.make_node("NonMaxSuppression", ["boxes", "scores"], ["b"], name="nms")
    none = helper.make_node("Cast", ["x"], ["b"], to=TensorProto.INT64)
    result = helper.make_empty_tensor_value_info("b")
    branches = [helper.make_graph([one], "branch", [], [result]) for one in (boxes, none)]
    proto = custom(
        helper.make_node("Unsqueeze", ["x", "axes"], ["scores"]),
        helper.make_node("Expand", ["scores", "sizes"], ["boxes"]),
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["some"], to=TensorProto.BOOL),
        helper.make_node(
            "If", ["some"], ["kept"], "chosen", then_branch=branches[0], else_branch=branches[1]
        ),
        helper.make_node("Shape", ["kept"], ["count"]),
        helper.make_node("ConstantOfShape", ["count"], ["y"]),
    )
    sizes = {"axes": np.array([0, 1]), "sizes": np.array([1, 4, 4])}
    proto.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in sizes.items())
    assert "node 'chosen' (If): a run chooses one of its branches" in refused(proto)


def test_the_types_of_an_operator_are_those_of_all_its_tensors():
    """Of axes, shapes and lengths too: where exporters note their types, they are looked at."""
    names = {"float": "float32", "double": "float64"}
    for schema in onnx.defs.get_all_schemas_with_history():
        operator = OPERATORS.get((schema.domain, schema.name))
        for tensor in (*schema.inputs, *schema.outputs) if operator else ():
            kinds = {kind[7:-1] for kind in tensor.types if kind.startswith("tensor(")}
            known = {names.get(kind, kind) for kind in kinds}
            assert not known or known.intersection(operator.types), (schema.name, tensor.name)


def test_every_family_is_in_the_table_and_no_operator_twice():
    files = (module.name for module in iter_modules(operators.__path__))
    modules = [import_module(f"{operators.__name__}.{name}") for name in files]
    tables = {module for module in modules if isinstance(getattr(module, "OPERATORS", 0), tuple)}
    assert tables == set(FAMILIES)
    assert sum(len(family.OPERATORS) for family in FAMILIES) == len(OPERATORS)


def test_refusing_needs_no_tvm(tmp_path):
    proto = model(
        [node("ImageDecoder", "x", "y")], {"x": ("n",)}, opset=20, dtype=TensorProto.UINT8
    )
    onnx.save(proto, tmp_path / "m.onnx")
    code = (
        "import sys; from ansor_deploy.cli import main\n"
        "try: main(['build', 'm.onnx', '--target', 'host', '--registry', 'r.db'])\n"
        "except SystemExit as end: print(end.code, 'tvm' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["3", "False"]
    assert "ImageDecoder" in done.stderr


def test_the_page_of_operators_is_current():
    script = [sys.executable, ROOT / "docs" / "make_operators.py", "--check"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("op", "hint"),
    [
        (
            "Softplus",
            "Softplus takes bfloat16 from opset 22 on, and the model has opset 17: export",
        ),
        ("Shrink", "No version of Shrink takes bfloat16: export the model in float32."),
    ],
)
def test_a_type_that_an_operator_does_not_take_yet(op, hint):
    with pytest.raises(ModelError, match="unsupported type") as caught:
        refuse_early(custom(helper.make_node(op, ["x"], ["y"]), kind=TensorProto.BFLOAT16))
    assert hint in caught.value.hint
