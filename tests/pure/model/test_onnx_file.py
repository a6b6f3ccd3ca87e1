"""Reading good models: data inside and outside the file, digests, static shapes."""

import hashlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from helpers.graphs import model, node, randn, random_feeds, run
from onnx import TensorProto, helper, inliner, numpy_helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.onnx.bind import bind_shapes
from ansor_deploy.model.onnx.file import load
from ansor_deploy.model.onnx.file_digest import digest
from ansor_deploy.model.operators.support import refuse_early


@pytest.fixture
def proto():
    constants = {"w": randn(0, 40, 50), "v": randn(1, 50)}
    nodes = [node("MatMul", "x w", "m"), node("Add", "m v", "y")]
    return model(nodes, {"x": ("batch", 40)}, constants=constants)


def save(proto, path, **options):
    onnx.save(proto, path, **options)
    return path


def save_external(proto, path, one_file=True):
    """Leaves `proto` as it is, unlike onnx.save."""
    copy = onnx.ModelProto.FromString(proto.SerializeToString())
    return save(
        copy, path, save_as_external_data=True, all_tensors_to_one_file=one_file,
        location="weights.bin" if one_file else None, size_threshold=0,
    )  # fmt: skip


def test_load_reads_what_was_saved(proto, tmp_path):
    path = save(proto, tmp_path / "m.onnx")
    read = load(path)
    assert read.proto == proto
    assert read.external == ()
    assert read.digest == hashlib.sha256(path.read_bytes()).hexdigest() == digest(path)
    assert repr(read) == f"OnnxModel({path}, 2 nodes, {read.digest[:12]})"


@pytest.mark.parametrize("one_file", [True, False])
def test_external_data_is_brought_in(proto, tmp_path, one_file):
    path = save_external(proto, tmp_path / "m.onnx", one_file)
    read = load(path)
    names = ["weights.bin"] if one_file else ["v", "w"]
    assert read.external == tuple(tmp_path / name for name in names)
    weights = {t.name: numpy_helper.to_array(t) for t in read.proto.graph.initializer}
    np.testing.assert_array_equal(weights["w"], randn(0, 40, 50))
    assert run(read.proto, random_feeds(proto))[0].shape == (1, 50)


def test_nodes_in_any_order_come_sorted(tmp_path):
    branch = model([node("Neg", "x", "n"), node("Abs", "n", "b")], {"x": (4,)}, ("b",)).graph
    del branch.input[:]
    chosen = node("If", "c", "y", then_branch=branch, else_branch=branch)
    constants = {"c": np.array(True)}
    proto = model([node("Exp", "w", "x"), chosen], {"w": (4,)}, constants=constants)
    for body in (proto.graph, *(entry.g for entry in proto.graph.node[1].attribute)):
        body.node.reverse()
    read = load(save(proto, tmp_path / "m.onnx")).proto.graph.node
    assert [entry.op_type for entry in read] == ["Exp", "If"]
    assert [entry.op_type for entry in read[1].attribute[0].g.node] == ["Neg", "Abs"]


@pytest.mark.parametrize("opset", [13, 17])
def test_norms_that_onnx_runtime_has_among_those_of_onnx(opset, tmp_path):
    nodes = [node("LayerNormalization", "x s", "m")]
    nodes += [node("SimplifiedLayerNormalization", "m s", "y")]
    constants = {"s": randn(0, 8)}
    proto = model([node("Relu", "x", "y")], {"x": (4, 8)}, constants=constants, opset=opset)
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    path = save(proto, tmp_path / "m.onnx")
    assert load(path).proto == proto
    refuse_early(load(path).proto)
    del proto.graph.node[0].input[1]
    if opset >= 17:
        with pytest.raises(ModelError, match="not valid ONNX"):
            load(save(proto, path))


def test_files_that_onnx_runtime_lets_pass_are_read_as_they_are_meant(proto, tmp_path):
    """Weights that are no inputs in a file of version 3; ONNX's own domain by its other name."""
    proto.ir_version = 3
    proto.opset_import[0].domain = "ai.onnx"
    for made in proto.graph.node:
        made.domain = "ai.onnx"
    read = load(save(proto, tmp_path / "m.onnx")).proto
    feeds = {"x": randn(2, 3, 40)}
    np.testing.assert_array_equal(run(read, feeds), run(proto, feeds))


def test_operators_of_onnx_runtime_need_no_import(tmp_path):
    """Its quantisers of weights leave it out."""
    proto = model([node("FastGelu", "x", "y", domain="com.microsoft")], {"x": (3, 4)})
    del proto.opset_import[:]
    proto.opset_import.append(helper.make_opsetid("", 17))
    read = load(save(proto, tmp_path / "m.onnx")).proto
    assert [one.domain for one in read.opset_import].count("com.microsoft") == 1


def test_functions_with_defaults_and_an_older_opset_are_written_out(tmp_path):
    leak = node("LeakyRelu", "a", "b")
    leak.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    function = helper.make_function(
        "own", "Leak", ["a"], ["b"], [leak], [helper.make_opsetid("", 16)],
        attribute_protos=[helper.make_attribute("slope", 0.5)],
    )  # fmt: skip
    proto = model([node("Relu", "x", "y")], {"x": (3,)}, opset=17)
    proto.functions.append(function)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    del proto.graph.node[:]
    proto.graph.node.append(helper.make_node("Leak", ["x"], ["t"], domain="own"))
    proto.graph.node.append(helper.make_node("Leak", ["t"], ["y"], domain="own", slope=2.0))
    read = inliner.inline_local_functions(load(save(proto, tmp_path / "m.onnx")).proto)
    assert [helper.get_node_attr_value(one, "alpha") for one in read.graph.node] == [0.5, 2.0]


def test_names_within_a_graph_may_be_those_outside(tmp_path):
    """A Scan of which an output, and that of its body, are both called y."""
    row = helper.make_tensor_value_info("row", TensorProto.FLOAT, [4])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    body = helper.make_graph([node("Relu", "row", "y")], "body", [row], [made])
    scan = node("Scan", "x", "y", body=body, num_scan_inputs=1)
    read = load(save(model([scan], {"x": (3, 4)}), tmp_path / "m.onnx")).proto
    assert [one.op_type for one in read.graph.node] == ["Scan"]


def test_what_is_no_tensor_is_named(tmp_path):
    proto = model([node("SplitToSequence", "x", "y")], {"x": (3, 4)})
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [1, 4])
    proto.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(kind))
    with pytest.raises(ModelError, match="output 'y' is a sequence, not a tensor"):
        load(save(proto, tmp_path / "m.onnx"))


def test_outputs_need_neither_shapes_nor_types(proto, tmp_path):
    output = proto.graph.output[0]
    output.type.tensor_type.ClearField("shape")
    proto.graph.output.add(name="m")
    read = load(save(proto, tmp_path / "m.onnx")).proto.graph.output
    assert read[0] == output
    assert read[1].type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    proto.graph.node[0].domain = "com.example"
    proto.opset_import.add(domain="com.example", version=1)
    with pytest.raises(ModelError, match="output 'm' has no type, and none is known"):
        load(save(proto, tmp_path / "m.onnx"))


def test_external_data_of_a_nested_constant(tmp_path):
    value = numpy_helper.from_array(randn(0, 50), "c")
    proto = model([node("Constant", "", "c", value=value), node("Add", "x c", "y")], {"x": (50,)})
    path = tmp_path / "m.onnx"
    onnx.save(
        proto, path, save_as_external_data=True, location="c.bin", size_threshold=0,
        convert_attribute=True,
    )  # fmt: skip
    read = load(path)
    assert read.external == (tmp_path / "c.bin",)
    np.testing.assert_array_equal(
        numpy_helper.to_array(read.proto.graph.node[0].attribute[0].t), randn(0, 50)
    )


def test_digest_covers_every_file_and_its_order(proto, tmp_path):
    path = save_external(proto, tmp_path / "m.onnx", one_file=False)
    before = load(path)
    v, w = before.external
    assert before.digest == digest(path, (v, w))
    assert len({before.digest, digest(path), digest(path, (v,)), digest(path, (w, v))}) == 4
    v.write_bytes(bytes(reversed(v.read_bytes())))
    assert digest(path, before.external) != before.digest


def test_digest_imports_nothing_heavy():
    code = (
        "import sys, ansor_deploy.model.onnx.file_digest;"
        "print({'onnx', 'numpy', 'tvm', 'google.protobuf'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_digest_of_a_missing_file(tmp_path):
    with pytest.raises(ModelError, match="no such file"):
        digest(tmp_path / "m.onnx")


def test_bind_shapes_sets_unknown_dimensions(proto):
    bound = bind_shapes(proto, {"x": (8, 40)})
    dims = bound.graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [8, 40]
    assert proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_bind_shapes_sets_an_unknown_rank(proto):
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    bound = bind_shapes(proto, {"x": (8, 40)})
    assert len(bound.graph.input[0].type.tensor_type.shape.dim) == 2


def test_static_models_need_no_shapes():
    proto = model([node("Relu", "x", "y")], {"x": (1, 3)})
    assert bind_shapes(proto, {}).graph == proto.graph
    assert bind_shapes(proto, {"x": (1, 3)}).graph == proto.graph
    scalar = model([node("Relu", "x", "y")], {"x": ()})
    assert bind_shapes(scalar, {}).graph == scalar.graph


def test_initializers_listed_as_inputs_are_constants():
    proto = model([node("Add", "x w", "y")], {"x": (3,), "w": (3,)}, constants={"w": randn(0, 3)})
    assert bind_shapes(proto, {}).graph == proto.graph
    with pytest.raises(ModelError, match="no input 'w'") as caught:
        bind_shapes(proto, {"w": (3,)})
    assert caught.value.hint == "Its inputs are: 'x'."


def test_unknown_dimensions_name_the_option(proto):
    with pytest.raises(ModelError) as caught:
        bind_shapes(proto, {})
    assert caught.value.message == "inputs with unknown dimensions: 'x' (batch, 40)"
    assert "--input-shape NAME=" in caught.value.hint


def test_every_unknown_input_is_named():
    nodes = [node("Add", "a b", "y")]
    proto = model(nodes, {"a": ("n", 3), "b": ("m", "k")})
    with pytest.raises(ModelError) as caught:
        bind_shapes(proto, {})
    assert "'a' (n, 3), 'b' (m, k)" in caught.value.message


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"z": (1, 40)}, "no input 'z'"),
        ({"x": (1,)}, r"has shape \(batch, 40\) in the model; \(1\) does not fit"),
        ({"x": (1, 41)}, "MatMul.* does not fit them: "),
        ({"x": (0, 40)}, "a size below one"),
        ({"x": (-1, 40)}, "a size below one"),
    ],
)
def test_bindings_that_do_not_fit(proto, shapes, message):
    with pytest.raises(ModelError, match=message) as caught:
        bind_shapes(proto, shapes)
    assert caught.value.hint
