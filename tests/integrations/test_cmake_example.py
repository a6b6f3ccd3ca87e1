"""examples/cmake: a program in C++ that gained a model, built, run, installed and built again."""

import os
import shutil

import onnx
import pytest
from helpers.classifier import EXAMPLES, SHARED, assert_classifies, require_avx2
from helpers.cmake import GENERATORS, configure, run
from helpers.hooked import observed_program, require
from onnx import numpy_helper


@pytest.fixture(scope="module", params=GENERATORS)
def built(request, tmp_path_factory):
    """The folder of a copy of the example, with what was built of it in `built`."""
    require(("cmake", "c++", GENERATORS[request.param]))
    require_avx2()
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(SHARED, folder / "classifier")
    shutil.copytree(EXAMPLES / "cmake", folder / "cmake")
    program = observed_program(folder / "bin")
    done = configure(folder / "cmake", folder / "built", request.param, program)
    assert done.returncode == 0, done.stdout
    build(folder)
    return folder


def build(folder):
    done = run("cmake", "--build", folder / "built", "-j2")
    assert done.returncode == 0, done.stdout


def library(folder):
    return folder / "built" / "ansor_deploy" / "stripes.so"


def program_time(folder):
    return (folder / "built" / "classify").stat().st_mtime_ns


def test_it_prints_what_the_model_computes(built):
    assert_classifies(built / "built" / "classify", library(built))


def test_its_own_tests_pass(built):
    done = run("ctest", "--test-dir", built / "built")
    assert done.returncode == 0, done.stdout
    assert "100% tests passed, 0 tests failed out of 2" in done.stdout


def test_it_can_be_installed(built, tmp_path):
    done = run("cmake", "--install", built / "built", "--prefix", tmp_path / "prefix")
    assert done.returncode == 0, done.stdout
    installed = tmp_path / "prefix" / "lib" / "classify" / "stripes.so"
    assert_classifies(built / "built" / "classify", installed)


def test_a_model_touched_links_nothing_again(built):
    before = program_time(built)
    os.utime(built / "classifier" / "stripes.onnx")
    build(built)
    assert program_time(built) == before


def test_a_model_trained_again_serves_the_same_program(built):
    before, path = program_time(built), built / "classifier" / "stripes.onnx"
    proto = onnx.load(path)
    for tensor in proto.graph.initializer:
        values = numpy_helper.to_array(tensor) * 0.5
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    onnx.save(proto, path)
    build(built)
    assert program_time(built) == before
    assert_classifies(built / "built" / "classify", library(built), path)
