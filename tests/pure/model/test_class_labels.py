"""Classifiers give numbers in the place of maps and text, and say what these mean."""

import numpy as np
import pytest
from helpers.graphs import randn, run
from helpers.named_classes import NAMES, by_label, model, scores, zip_map
from onnx import ModelProto, TensorProto, helper, numpy_helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.onnx.class_labels import keep_labels, say_in_numbers
from ansor_deploy.model.onnx.file import load
from ansor_deploy.model.operators.support import refuse_early

X = randn(0, 9, 6)


def by_place():
    """As one that was trained on text and has no operator of its own: it picks of a list."""
    picked = numpy_helper.from_array(np.array(["owl", "cat", "owl"], object), "classes")
    words = {"domain": "ai.onnx.ml"}
    return model(
        scores(3),
        helper.make_node("ArgMax", ["score"], ["place"], axis=1),
        helper.make_node("ArrayFeatureExtractor", ["classes", "place"], ["row"], **words),
        helper.make_node("Flatten", ["row"], ["text"], axis=0),
        zip_map(classlabels_int64s=[5, 7, 9]),
        maps=TensorProto.INT64,
        weights=[picked],
    )


def in_numbers(proto):
    changed = ModelProto.FromString(proto.SerializeToString())
    return changed, say_in_numbers(changed)


@pytest.mark.parametrize(
    ("proto", "labels"),
    [
        (by_label(), {"maps": NAMES, "text": NAMES}),
        (by_place(), {"maps": (5, 7, 9), "text": ("owl", "cat")}),
    ],
)
def test_numbers_and_their_labels_are_what_the_model_says(proto, labels):
    changed, found = in_numbers(proto)
    assert found == labels
    (maps, text), (rows, places) = (run(one, {"x": X}) for one in (proto, changed))
    assert [list(row) for row in maps] == [list(labels["maps"])] * len(X)
    np.testing.assert_array_equal(rows, [list(row.values()) for row in maps])
    assert (rows.dtype, places.dtype) == (np.float32, np.int64)
    assert [labels["text"][place] for place in places.flat] == list(text.flat)


def test_a_model_without_operators_of_onnx_s_own_gets_a_version_of_them():
    """As CatBoost writes classifiers."""
    proto = by_label()
    del proto.opset_import[:]
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 2))
    changed, _ = in_numbers(proto)
    assert {entry.domain for entry in changed.opset_import} == {"", "ai.onnx.ml"}


def test_one_output_alone_is_served():
    assert in_numbers(model(scores(2), maps=0, text="label"))[1] == {"label": NAMES[:2]}
    proto, labels = in_numbers(model(scores(2), zip_map(classlabels_int64s=[1, 2]), text=""))
    assert labels == {"maps": (1, 2)}
    assert run(proto, {"x": X})[0].shape == (9, 2)


def test_maps_keep_the_type_of_their_numbers():
    """Exporters write maps of float64, which ONNX Runtime does not take."""
    proto = model(scores(2), zip_map(classlabels_int64s=[1, 2]), text="")
    kind = proto.graph.output[0].type.sequence_type.elem_type.map_type.value_type
    kind.tensor_type.elem_type = TensorProto.DOUBLE
    changed, _ = in_numbers(proto)
    assert changed.graph.output[0].type.tensor_type.elem_type == TensorProto.DOUBLE


def encoded(first, second, **attributes):
    """Labels that a LabelEncoder makes of a classifier's."""
    words = {"domain": "ai.onnx.ml", **{f"keys_{k}": v for k, v in first.items()}, **attributes}
    words |= {f"values_{k}": v for k, v in second.items()}
    encoder = helper.make_node("LabelEncoder", ["label"], ["text"], **words)
    proto = model(scores(3), encoder, maps=0)
    proto.opset_import[1].version = 4
    return proto


@pytest.mark.parametrize("default", [{}, {"default_string": "none"}])
def test_text_that_an_encoder_makes_is_places(default):
    proto = encoded({"strings": ["owl", "cat"]}, {"strings": ["b", "a"]}, **default)
    changed, labels = in_numbers(proto)
    assert labels == {"text": ("b", "a", *(default.values() or ["_Unused"]))}
    (text,), (places,) = (run(one, {"x": X}) for one in (proto, changed))
    assert len(set(text.flat)) > 1
    assert [labels["text"][place] for place in places.flat] == list(text.flat)


def test_text_in_tensors_is_places_as_well():
    keys = numpy_helper.from_array(np.array(["cat", "cow", "dog"], object), "k")
    default = numpy_helper.from_array(np.array(["z"], object), "d")
    values = numpy_helper.from_array(np.array(["y", "x", "y"], object), "v")
    proto = encoded({"tensor": keys}, {"tensor": values}, default_tensor=default)
    changed, labels = in_numbers(proto)
    (text,), (places,) = (run(one, {"x": X}) for one in (proto, changed))
    assert [labels["text"][place] for place in places.flat] == list(text.flat)


def test_text_that_an_encoder_makes_numbers_of_is_no_text_any_more():
    proto = encoded({"strings": ["owl", "cow", "cat"]}, {"int64s": [7, 8, 9]})
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    changed, labels = in_numbers(proto)
    assert labels == {}
    want, have = (run(one, {"x": X})[0] for one in (proto, changed))
    np.testing.assert_array_equal(have, want)


def test_labels_are_kept_in_a_model_that_is_written_anew():
    changed, labels = in_numbers(by_label())
    keep_labels(changed, labels)
    assert in_numbers(changed)[1] == labels
    changed.metadata_props[0].value = '{"maps": 3}'
    assert in_numbers(changed)[1] == {}


def test_text_that_is_computed_with_is_refused(tmp_path):
    upper = helper.make_node("StringNormalizer", ["label"], ["text"], case_change_action="UPPER")
    proto, labels = in_numbers(model(scores(3), upper, maps=0))
    assert labels == {}
    (path := tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match="strings are not compiled"):
        refuse_early(load(path).proto)
