"""A manifest is one noun: what is written is read again, and nothing else is."""

import pytest
from helpers.libraries import manifest, task
from msgspec.structs import replace

from ansor_deploy.errors import AnsorError
from ansor_deploy.ship.manifest import json_bytes, read_manifest

SHAPES = ({"x": (1, 4)}, {"x": (2, 4)})
TENSOR = {"name": "x", "shape": [1, 4], "dtype": "float32"}
PLACE = {"shape": 0, "nodes": [{"name": "n", "op": "Add"}]}
OF_CODES = ("target", "tasks", "kernels", "others", "memory", "verification")
BARE = manifest(
    inputs=[TENSOR],
    tasks=[task("0" * 64, impact=0.5, latency_ms=1.0, places=[PLACE])],
    others=[{**PLACE, "kernels": ["k"]}],
    lenders=None,
)
CODE = {**{name: BARE.to_json()[name] for name in OF_CODES}, "lenders": "d" * 64}


@pytest.fixture
def library(tmp_path):
    (tmp_path / "m.so").touch()
    return tmp_path / "m.so"


def read_again(library, known):
    library.with_suffix(".json").write_bytes(json_bytes(known.to_json()))
    return read_manifest(library)


@pytest.mark.parametrize(
    "known", [BARE, manifest(codes=[CODE, CODE]), replace(BARE, ran_on="pi", lock="e" * 64)]
)
def test_what_is_written_is_read_again(library, known):
    found = read_again(library, known)
    assert found == known
    assert json_bytes(found.to_json()) == library.with_suffix(".json").read_bytes()


def test_a_field_that_may_be_absent_is_not_written():
    assert "codes" not in BARE.to_json()
    assert BARE.to_json()["lenders"] is None
    assert "lenders" not in manifest().to_json()


@pytest.mark.parametrize(("given", "known"), [(SHAPES[0], SHAPES[:1]), (SHAPES, SHAPES)])
def test_a_model_has_its_shapes_one_by_one(library, given, known):
    said = replace(BARE, model=replace(BARE.model, input_shapes=given))
    assert read_again(library, said).model.shapes == known


def test_the_target_is_the_machine_again():
    assert BARE.target.machine.fingerprint == BARE.target.fingerprint


@pytest.mark.parametrize("name", ["identity", "linker", "memory", "verification"])
def test_every_field_is_there(library, name):
    said = {key: value for key, value in BARE.to_json().items() if key != name}
    library.with_suffix(".json").write_bytes(json_bytes(said))
    with pytest.raises(AnsorError, match=f"not a manifest: .*missing required field `{name}`"):
        read_manifest(library)


def test_one_that_a_shell_has_emptied_says_so(library):
    library.with_suffix(".json").write_bytes(b"")
    with pytest.raises(AnsorError, match="it is empty") as caught:
        read_manifest(library)
    assert f"> {library.stem}.json" in caught.value.hint


def test_a_library_that_is_not_there_is_missed_and_not_its_manifest(library):
    library.unlink()
    with pytest.raises(AnsorError, match=r"m\.so: there is no such library"):
        read_manifest(library)
