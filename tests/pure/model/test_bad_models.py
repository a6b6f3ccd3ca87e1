"""Files that are missing, damaged or hostile end in one ModelError that names the cause."""

import os
import resource
import subprocess
import sys

import numpy as np
import onnx
import pytest
from helpers.graphs import model, node, randn
from onnx import ModelProto, TensorProto, helper, numpy_helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.onnx import file
from ansor_deploy.model.onnx.bind import bind_shapes
from ansor_deploy.model.onnx.file import load
from ansor_deploy.model.onnx.tensor_data import check_size
from ansor_deploy.model.operators.support import refuse_early


def good():
    return model([node("Add", "x w", "y")], {"x": (3, 50)}, constants={"w": randn(0, 50)})


def refused(path, words):
    with pytest.raises(ModelError) as caught:
        load(path)
    assert words in caught.value.message
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code == 3
    return caught.value


def written(tmp_path, proto):
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def external(tmp_path, location, **entries):
    """A model with its weight in another file."""
    proto = good()
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    folder = tmp_path / "model"
    folder.mkdir(exist_ok=True)
    return written(folder, proto)


def test_missing(tmp_path):
    refused(tmp_path / "none.onnx", "no such file")


def test_folder(tmp_path):
    refused(tmp_path, "cannot be read")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_not_permitted(tmp_path):
    path = written(tmp_path, good())
    path.chmod(0)
    refused(path, "cannot be read: Permission denied")


def test_empty(tmp_path):
    path = tmp_path / "m.onnx"
    path.touch()
    refused(path, "the file is empty")


def test_garbage(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\xff\xfe this is no protobuf " * 99)
    refused(path, "not an ONNX file")
    path.write_text("<html>404 not found</html>\n")
    refused(path, "not an ONNX file")


@pytest.mark.parametrize(
    ("begin", "hint"),
    [
        (b"PK\3\4", "torch.onnx.export"),
        (b"\x7fELF", "the model that it was built of"),
        (b"\x89HDF", "tf2onnx"),
        (b"\x1c\0\0\0TFL3", "tf2onnx --tflite"),
    ],
)
def test_a_file_of_another_format(begin, hint, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(begin + b"\xff no protobuf " * 99)
    assert hint in refused(path, "a").hint


def test_a_pointer_of_git_lfs(tmp_path):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    path = external(tmp_path, "w.bin")
    (path.parent / "w.bin").write_text(pointer)
    assert "git lfs pull" in refused(path, "its external data file w.bin is a Git LFS poin").hint
    path.write_text(pointer)
    assert "git lfs pull" in refused(path, "the file is a Git LFS pointer").hint


def test_cut_short_anywhere(tmp_path):
    path = written(tmp_path, good())
    whole = path.read_bytes()
    for length in range(1, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelError):
            load(path)


def test_no_nodes(tmp_path):
    proto = good()
    del proto.graph.node[:]
    assert "again" not in refused(written(tmp_path, proto), "no nodes").hint  # nothing is wrong


def test_no_outputs(tmp_path):
    proto = good()
    del proto.graph.output[:]
    refused(written(tmp_path, proto), "no outputs")


def test_cycle(tmp_path):
    proto = good()
    proto.graph.node.extend([node("Relu", "b", "a"), node("Relu", "a", "b")])
    refused(written(tmp_path, proto), "the graph has a cycle")


def test_two_nodes_make_one_tensor(tmp_path):
    proto = good()
    proto.graph.node.append(node("Relu", "x", "y"))
    assert "download" not in refused(written(tmp_path, proto), "not valid ONNX").hint  # it is whole


def test_two_weights_of_one_name(tmp_path):
    proto = good()
    proto.graph.initializer.append(proto.graph.initializer[0])
    refused(written(tmp_path, proto), "more than one initializer is named 'w'")


@pytest.mark.parametrize("field", ["input", "string_data"])
def test_text_that_is_no_utf_8(field, tmp_path):
    proto = good()
    proto.graph.initializer.append(helper.make_tensor("t", TensorProto.STRING, [1], [b"mark"]))
    name = "mark" if field == "input" else "x"
    proto.graph.node[0].input[0] = proto.graph.input[0].name = name
    path = written(tmp_path, proto)
    path.write_bytes(path.read_bytes().replace(b"mark", b"m\xffrk"))
    refused(path, f"text is not UTF-8 (in a field '{field}'): b'm\\xffrk'")


def test_an_operator_that_an_exporter_left_in_the_graph(tmp_path):
    """As tf2onnx leaves those of TensorFlow that it cannot convert, with bytes as attributes."""
    proto = good()
    proto.graph.node.append(helper.make_node("PartitionedCall", ["x"], ["z"], config=b"\x92\xff"))
    error = refused(written(tmp_path, proto), "No Op registered for PartitionedCall")
    assert "replace it in the model" in error.hint


@pytest.mark.parametrize("which", ["m.onnx", "w.bin"])
def test_a_file_that_is_changed_while_it_is_read(which, tmp_path, monkeypatch):
    """Another model in its place would else be taken for what was read."""
    path = external(tmp_path, "w.bin")
    (path.parent / "w.bin").write_bytes(bytes(200))
    check = file._check

    def change_and_check(proto):
        (path.parent / which).write_bytes((path.parent / which).read_bytes() + b"\0")
        check(proto)

    monkeypatch.setattr(file, "_check", change_and_check)
    refused(path, "it was changed while it was read")


def test_undefined_input_and_unknown_operator(tmp_path):
    proto = good()
    proto.graph.node[0].input[0] = "nowhere"
    refused(written(tmp_path, proto), "node 'y' reads 'nowhere', which is no input of the model")
    proto.graph.node[0].input[0] = "x"
    proto.graph.node[0].op_type = "Blur"
    refused(written(tmp_path, proto), "Blur")


def test_an_output_that_nothing_makes(tmp_path):
    proto = good()
    proto.graph.output[0].name = "z"
    refused(written(tmp_path, proto), "'z'")


def test_opset_from_the_future(tmp_path):
    proto = good()
    proto.opset_import[0].version = 9999
    refused(written(tmp_path, proto), "opset 9999, but the onnx package here knows up to")
    proto = good()
    proto.ir_version = 9999
    refused(written(tmp_path, proto), "IR version 9999, but the onnx package here knows up to")


def test_sparse_weight(tmp_path):
    proto = good()
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("s", 1, [1], [1.0]), helper.make_tensor("i", 7, [1], [0]), [50]
    )
    proto.graph.sparse_initializer.append(sparse)
    refused(written(tmp_path, proto), "weight 's' is sparse")
    sparse = proto.graph.sparse_initializer.pop()
    made = helper.make_node("Constant", [], ["c"], sparse_value=sparse)
    proto.graph.node.insert(0, made)
    refused(written(tmp_path, proto), "weight 'c' is sparse")


@pytest.mark.parametrize("dims", [(51,), (2**40, 2**40), (49,), (-1,)])
def test_dimensions_that_the_data_does_not_fill(tmp_path, dims):
    proto = good()
    del proto.graph.initializer[0].dims[:]
    proto.graph.initializer[0].dims.extend(dims)
    refused(written(tmp_path, proto), "tensor 'w'")


def test_unknown_element_type(tmp_path):
    proto = good()
    proto.graph.initializer[0].data_type = 99
    refused(written(tmp_path, proto), "unknown element type (99)")


@pytest.mark.parametrize("count", [50, 5000])
def test_dimensions_that_typed_data_does_not_fill(tmp_path, count):
    proto = good()
    weight = helper.make_tensor("w", TensorProto.FLOAT, [count], [1.0] * count)
    weight.dims[0] = 2**40
    proto.graph.initializer[0].CopyFrom(weight)
    refused(written(tmp_path, proto), "tensor 'w' of shape (1099511627776,)")


@pytest.mark.parametrize(
    "name", ["FLOAT", "FLOAT16", "BFLOAT16", "INT4", "INT8", "BOOL", "INT64", "COMPLEX64", "DOUBLE"]
)
@pytest.mark.parametrize("raw", [True, False])
def test_every_way_to_hold_data_is_counted_right(name, raw):
    dtype = helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(name))
    values = np.arange(5).astype(dtype)
    tensor = numpy_helper.from_array(values, "w")
    if not raw:
        tensor = helper.make_tensor("w", tensor.data_type, [5], values)
    check_size(tensor)
    tensor.dims[0] = 7
    with pytest.raises(ModelError, match="tensor 'w'"):
        check_size(tensor)


def test_external_file_missing(tmp_path):
    path = external(tmp_path, "w.bin")
    refused(path, "tensor 'w'")
    refused(path, "'w.bin' is missing")


@pytest.mark.parametrize(
    "location", ["../w.bin", "/etc/hostname", "", "a/../../w.bin", ".", "a\0b"]
)
def test_external_file_outside_the_folder(tmp_path, location):
    (tmp_path / "w.bin").write_bytes(bytes(200))
    refused(external(tmp_path, location), "is outside the model's folder")


def test_external_file_outside_by_a_link(tmp_path):
    (tmp_path / "w.bin").write_bytes(bytes(200))
    path = external(tmp_path, "link.bin")
    (path.parent / "link.bin").symlink_to(tmp_path / "w.bin")
    refused(path, "is outside the model's folder")
    (path.parent / "link.bin").unlink()
    (path.parent / "real.bin").write_bytes(bytes(200))
    (path.parent / "link.bin").symlink_to("real.bin")
    assert load(path).external == (path.parent / "link.bin",)


def test_external_files_in_a_copy_made_of_links(tmp_path):
    path = external(tmp_path, "w.bin")
    (path.parent / "w.bin").write_bytes(bytes(200))
    (tmp_path / "secret.bin").write_bytes(bytes(200))
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in (path.name, "w.bin"):
        (copy / name).symlink_to(path.parent / name)
    assert load(copy / path.name).external == (copy / "w.bin",)
    (copy / "w.bin").unlink()
    (copy / "w.bin").symlink_to(tmp_path / "secret.bin")
    refused(copy / path.name, "is outside the model's folder")


def test_external_file_that_is_none(tmp_path):
    path = external(tmp_path, "w.bin")
    (path.parent / "w.bin").mkdir()
    refused(path, "is not a file")
    (path.parent / "w.bin").rmdir()
    os.mkfifo(path.parent / "w.bin")
    refused(path, "is not a file")


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({}, "needs bytes 0 to 200"),
        ({"offset": 8, "length": 200}, "needs bytes 8 to 208"),
        ({"offset": 2**62}, "needs bytes"),
        ({"length": 100}, "declares 100"),
        ({"length": 2**50}, "declares"),
        ({"offset": -4}, "offset '-4'"),
        ({"offset": "four"}, "offset 'four'"),
        ({"offset": "9" * 5000}, "offset '999"),
    ],
)
def test_external_file_too_short(tmp_path, entries, words):
    path = external(tmp_path, "w.bin", **entries)
    (path.parent / "w.bin").write_bytes(bytes(199))
    refused(path, words)


def test_external_tensors_that_share_their_bytes_too_often(tmp_path):
    path = external(tmp_path, "w.bin")
    (path.parent / "w.bin").write_bytes(bytes(200))
    proto = ModelProto.FromString(path.read_bytes())
    for k in range(4):
        copy = proto.graph.initializer.add()
        copy.CopyFrom(proto.graph.initializer[0])
        copy.name = f"w{k}"
        load(path)  # so far, no byte is read more than four times
        path.write_bytes(proto.SerializeToString())
    refused(path, "its external tensors are 1000 bytes; their files hold 200")


def test_hostile_sizes_allocate_nothing(tmp_path):
    """A terabyte of declared weights is refused by a process that may use one gigabyte more."""
    proto = good()
    proto.graph.initializer[0].dims[0] = 2**38
    path = written(tmp_path, proto)
    code = f"""
import pathlib, resource
from ansor_deploy.errors import ModelError
from ansor_deploy.model.onnx.bind import bind_shapes
from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.onnx.file import load
from ansor_deploy.model.operators.support import refuse_early
from ansor_deploy.model.onnx.tensor_data import check_size
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * {resource.getpagesize()} + 2**30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    load(pathlib.Path({str(path)!r}))
except ModelError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "needs 1099511627776 bytes" in done.stdout


def test_saved_as_text_is_refused(tmp_path):
    path = tmp_path / "m.onnxtxt"
    onnx.save(good(), path)
    refused(path, "not an ONNX file")


def test_empty_message_is_refused(tmp_path):
    refused(written(tmp_path, ModelProto(ir_version=8)), "no nodes")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda proto: setattr(proto.graph.node[0].attribute[0], "s", b"lin\xff"),
        lambda proto: scales(proto, np.array([1, 1, np.nan, 2], "float32")),
        lambda proto: scales(proto, np.float32(2)),
    ],
)
def test_what_no_code_of_an_operator_foresees_names_the_node(spoil):
    nodes = [node("Resize", "x - scales", "y", mode="linear")]
    ones = np.ones(4, "float32")
    proto = model(nodes, {"x": (1, 1, 4, 4)}, constants={"scales": ones}, opset=19)
    spoil(proto)
    with pytest.raises(ModelError, match="node 'y'"):
        canonical_graph(bind_shapes(proto, {}))


def test_an_element_type_that_there_is_not():
    proto = good()
    proto.graph.input[0].type.tensor_type.elem_type = 77
    with pytest.raises(ModelError, match="type 77"):
        refuse_early(proto)


def scales(proto, value):
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(value, "scales"))
