"""Samples are read whole or refused in words: names, shapes, types, NaN, pickles, emptiness."""

from pathlib import Path

import numpy as np
import pytest

from ansor_deploy.errors import UsageError
from ansor_deploy.quantise import samples
from ansor_deploy.quantise.samples import Input, read_samples, sample_files, samples_digest

X = Input("x", (1, 3, 4), "float32")
IDS = Input("ids", (2, 5), "int64")
OPEN = Input("x", (None, 3, 4), "float32")


def some(*shape, dtype="float32"):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def saved(folder, **arrays):
    np.savez(folder / "s.npz", **arrays)
    return folder / "s.npz"


@pytest.mark.parametrize(
    ("shape", "one"),
    [
        ((7, 1, 3, 4), X),  # an axis of samples
        ((7, 3, 4), X),  # batches of one, one after the other
        ((7, 3, 4), OPEN),  # the model says nothing of a batch
        ((14, 5), IDS),  # batches of two
    ],
)
def test_an_archive_has_samples_along_its_first_axis(shape, one, tmp_path):
    values = some(*shape, dtype=one.dtype)
    found = read_samples(saved(tmp_path, **{one.name: values}), [one])
    assert len(found) == 7
    given = np.concatenate([each[one.name].reshape(-1) for each in found])
    np.testing.assert_array_equal(given, values.reshape(-1))
    assert {each[one.name].shape[-1] for each in found} == {one.shape[-1]}


def test_several_inputs_are_taken_together(tmp_path):
    ids = np.arange(30).reshape(6, 5)
    found = read_samples(saved(tmp_path, x=some(3, 1, 3, 4), ids=ids), [X, IDS])
    assert len(found) == 3
    np.testing.assert_array_equal(found[1]["ids"], ids[2:4])


def test_a_folder_has_a_sample_a_file_by_name(tmp_path):
    for at in (2, 1):
        np.save(tmp_path / f"{at}.npy", np.full((3, 4), at, "float32"))
    np.savez(tmp_path / "3.npz", x=np.full((1, 3, 4), 3, "float32"))
    (tmp_path / "notes.txt").write_text("no sample")
    found = read_samples(tmp_path, [X])
    assert [each["x"].flat[0] for each in found] == [1, 2, 3]
    assert {each["x"].shape for each in found} == {(1, 3, 4)}


def with_nan():
    values = some(2, 1, 3, 4)
    values[1, 0, 2, 3] = np.nan
    return {"x": values}


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"y": some(2, 1, 3, 4)}, "no input 'y'"),
        ({"x": some(2, 1, 3, 4), "extra": some(2)}, "no input 'extra'"),
        ({"x": some(2, 1, 4, 3)}, "'x' is 2x1x4x3"),
        ({"x": some(3)}, "'x' is 3"),
        ({"x": np.float32(1)}, "'x' is scalar"),
        ({"x": some(2, 1, 3, 4, dtype="float64")}, "is of float64"),
        ({"x": some(2, 1, 3, 4, dtype="uint8")}, "is of uint8"),
        (with_nan(), "NaN or infinities"),
        ({"x": np.full((1, 3, 4), np.inf, "float32")}, "NaN or infinities"),
        ({"x": some(0, 1, 3, 4)}, "no sample"),
        ({"x": np.asarray([{}, {}], object)}, "not a NumPy file of plain arrays"),
        ({}, "no array of the input 'x'"),
    ],
)
def test_bad_samples_are_refused_in_words(arrays, words, tmp_path):
    with pytest.raises(UsageError, match=words) as refused:
        read_samples(saved(tmp_path, **arrays), [X])
    assert refused.value.hint or "plain arrays" in words
    assert refused.value.file == tmp_path / "s.npz"


def test_a_batch_that_does_not_come_out_even_is_refused(tmp_path):
    with pytest.raises(UsageError, match="'ids' is 3x5"):
        read_samples(saved(tmp_path, ids=np.zeros((3, 5), "int64")), [IDS])


def test_different_numbers_of_samples_are_refused(tmp_path):
    path = saved(tmp_path, x=some(2, 1, 3, 4), ids=np.zeros((6, 5), "int64"))
    with pytest.raises(UsageError, match="2 of x, 3 of ids"):
        read_samples(path, [X, IDS])


def test_a_wrong_file_in_a_folder_is_named(tmp_path):
    np.save(tmp_path / "1.npy", some(1, 3, 4))
    np.save(tmp_path / "2.npy", some(1, 4, 4))
    with pytest.raises(UsageError) as refused:
        read_samples(tmp_path, [X])
    assert refused.value.file == tmp_path / "2.npy"


def test_arrays_without_names_are_of_a_model_with_one_input(tmp_path):
    np.save(tmp_path / "1.npy", some(1, 3, 4))
    with pytest.raises(UsageError, match="several inputs, each with a name"):
        read_samples(tmp_path, [X, IDS])


def test_what_is_no_archive_is_refused(tmp_path):
    (tmp_path / "s.npz").write_bytes(b"no archive")
    with pytest.raises(UsageError, match="not a NumPy file"):
        read_samples(tmp_path / "s.npz", [X])


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"no \.npz and no \.npy file"):
        sample_files(tmp_path)


@pytest.mark.parametrize("name", ["MOST_BYTES", "MOST_FILES"])
def test_there_is_a_bound(name, tmp_path, monkeypatch):
    monkeypatch.setattr(samples, name, 1)
    for at in range(2):
        np.save(tmp_path / f"{at}.npy", some(1, 3, 4))
    with pytest.raises(UsageError, match="samples"):
        read_samples(tmp_path, [X])


def test_the_digest_is_of_contents_and_order(tmp_path):
    one, other = tmp_path / "1.npy", tmp_path / "2.npy"
    np.save(one, some(1, 3, 4))
    np.save(other, some(2, 3, 4))
    whole = samples_digest([one, other])
    assert whole != samples_digest([other, one])
    (tmp_path / "3.npy").write_bytes(one.read_bytes())
    assert whole == samples_digest([tmp_path / "3.npy", other])
    with pytest.raises(UsageError, match="cannot be read"):
        samples_digest([Path("missing.npz")])
