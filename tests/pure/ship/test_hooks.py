"""The files for build systems and for C: where they are, and the header of a library."""

from pathlib import Path

import pytest
from helpers.cli_inside import program
from helpers.cli_process import refused
from helpers.libraries import manifest, task

import ansor_deploy
from ansor_deploy.errors import UsageError
from ansor_deploy.ship.outputs.c_header import header, identifier, literal

FLOATS = {"dtype": "float32", "shape": [1, 3, 2]}


def written(inputs=("x",), outputs=("y",), file="net.so", **said):
    """The header of a library with these tensors. said: what else its manifest says."""
    names = {"inputs": inputs, "outputs": outputs}
    some = {kind: [{"name": name, **FLOATS} for name in names[kind]] for kind in names}
    return header(file, manifest(**some, **said).interfaces)


def test_the_c_folder_has_the_api(tmp_path):
    folder = Path(program(tmp_path, "hooks", "c").stdout.strip())
    assert {"ansor_deploy.h", "ansor_deploy.c", "ansor-deploy.pc"} <= {
        path.name for path in folder.iterdir()
    }


def test_the_runtime_is_found_without_importing_it(tmp_path):
    folder = Path(program(tmp_path, "hooks", "runtime").stdout.strip())
    assert (folder / "tvm" / "lib" / "libtvm_runtime.so").is_file()
    assert (folder / "tvm_ffi" / "lib" / "libtvm_ffi.so").is_file()


def test_there_are_hooks_for_some_build_systems_only(tmp_path):
    result = program(tmp_path, "hooks", "scons")
    refused(result, 2, "scons")


def test_pkg_config_states_the_version(tmp_path):
    text = Path(program(tmp_path, "hooks", "c").stdout.strip(), "ansor-deploy.pc").read_text()
    assert f"\nVersion: {ansor_deploy.__version__}\n" in text


def test_cmake_knows_the_version(tmp_path):
    folder = Path(program(tmp_path, "hooks", "cmake").stdout.strip())
    assert (folder / "AnsorDeployConfig.cmake").is_file()
    text = (folder / "AnsorDeployConfigVersion.cmake").read_text()
    assert f'\nset(PACKAGE_VERSION "{ansor_deploy.__version__}")\n' in text


def test_a_header_depends_on_the_interface_alone():
    """What depends on it is compiled again where it changes, and only there."""
    assert written(tasks=[task("0" * 64, record="7")]) == written()
    assert written(outputs=("z",)) != written()


def test_identifiers_differ_also_as_capitals():
    text = written(inputs=("a-b", "a_b", "A B", "ab", "ü", "7"))
    for constant in ("IN_A_B", "IN_A_B_1", "IN_A_B_2", "IN_AB", "IN_4", "IN_7", "OUT_Y"):
        assert text.count(f"#define NET_{constant}_COUNT 6 ") == 1


def test_a_name_that_is_no_identifier():
    assert identifier("__8-bit résumé.v2__") == "8_bit_r_sum_v2"
    assert "int model_8bit_run(" in written(file="8bit.so")


def test_a_literal_ends_neither_itself_nor_a_comment():
    assert literal('a"*/?\\ü\n') == r'"a\042\052/\077\134\303\274\012"'


def test_a_type_without_whole_bytes_is_refused():
    with pytest.raises(UsageError, match="y: C has no type for int4"):
        header("net.so", manifest(outputs=[{**FLOATS, "name": "y", "dtype": "int4"}]).interfaces)


def test_bazel_knows_the_version(tmp_path):
    folder = Path(program(tmp_path, "hooks", "bazel").stdout.strip())
    assert {"BUILD", "WORKSPACE", "defs.bzl"} <= {path.name for path in folder.iterdir()}
    text = (folder / "MODULE.bazel").read_text()
    assert f'\n    version = "{ansor_deploy.__version__}",\n' in text
