"""examples/make and examples/ninja: the program gains a model, and prints what it computes."""

import os
import shutil
import subprocess

import onnx
import pytest
from helpers.classifier import EXAMPLES, SHARED, assert_classifies, require_avx2
from helpers.hooked import observed_program, require
from stripes_model import stripes

TOOLS = {"make": ("make", "c++"), "ninja": ("ninja", "c++", "pkg-config")}


class Example:
    """A copy of an example's folder and of the sources beside it."""

    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder
        shutil.copytree(SHARED, folder / "classifier")
        shutil.copytree(EXAMPLES / tool, folder / tool)
        self.observed = observed_program(folder / "bin")

    def run(self, *words, succeeds=True):
        """What the build system says."""
        path = f"{self.observed.parent}:{os.environ['PATH']}"
        done = subprocess.run(
            [self.tool, *words],
            cwd=self.folder / self.tool,
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert (done.returncode == 0) == succeeds, done.stdout
        return done.stdout

    @property
    def program(self):
        return self.folder / self.tool / "build" / "classify"

    @property
    def library(self):
        return next((self.folder / self.tool / "build").rglob("stripes.so"))


@pytest.fixture(scope="module", params=TOOLS)
def example(request, tmp_path_factory):
    require(TOOLS[request.param])
    require_avx2()
    made = Example(request.param, tmp_path_factory.mktemp("example"))
    made.run("-j2")
    return made


def test_the_model_is_what_the_script_writes():
    assert onnx.load(SHARED / "stripes.onnx").graph == stripes().graph


def test_it_prints_what_the_model_computes(example):
    assert_classifies(example.program, example.library)


def test_a_model_touched_compiles_nothing(example):
    os.utime(example.folder / "classifier" / "stripes.onnx")
    said = example.run()
    assert "classify.cpp" not in said
    assert "ansor-deploy" not in example.run()


def test_a_model_of_another_interface_stops_the_compiler(example):
    """In the run that builds the model, and not in the next one."""
    model = example.folder / "classifier" / "stripes.onnx"
    kept = model.read_bytes()
    model.write_bytes(kept.replace(b"probabilities", b"probabilitios"))
    assert "STRIPES_OUT_PROBABILITIES_COUNT" in example.run(succeeds=False)
    model.write_bytes(kept)
    example.run()
    assert_classifies(example.program, example.library)


@pytest.fixture
def fresh(tmp_path):
    """The example for make, not built."""
    require(TOOLS["make"])
    require_avx2()
    return Example("make", tmp_path)


def test_a_dry_run_of_make_writes_nothing(fresh):
    assert "ansor-deploy build" in fresh.run("-n")
    fresh.run("-q", succeeds=False)
    assert not (fresh.folder / "make" / "build").exists()


def test_make_tune_makes_the_lock_that_is_missing(fresh):
    lock = fresh.folder / "classifier" / "stripes.lock"
    lock.unlink()
    assert "make it: make tune-stripes" in fresh.run(succeeds=False)
    fresh.run("tune", "ANSOR_DEPLOY_TUNE_FLAGS=--trials 4 --registry tuned.db")
    assert lock.is_file()
    fresh.run("-j2")
    fresh.run("-q")
    assert_classifies(fresh.program, fresh.library)
