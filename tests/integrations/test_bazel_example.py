"""examples/bazel: a program in C++ that gained a model, built, run, tested, tuned, built again."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import onnx
import pytest
from helpers.classifier import EXAMPLES, assert_classifies, require_avx2
from helpers.debian_bazel import Bazel, bin_folder
from helpers.fences import ROOT, parts
from helpers.hooked import observed_program
from onnx import numpy_helper

from ansor_deploy.ship.integrations import hook_folder

PAGE = ROOT / "docs" / "bazel.md"


@dataclass(frozen=True)
class Example:
    """A copy of the example. base: where Bazel's outputs lie. tool: the ansor-deploy it finds."""

    bazel: Bazel
    source: Path
    base: Path
    tool: Path

    def run(self, *words: str):
        done = self.bazel.run(self.source, *words)
        assert done.returncode == 0, done.stderr
        return done

    def made(self, name: str) -> Path:
        return bin_folder(self.base, "classify") / name


@pytest.fixture(scope="module")
def example(bazel, tmp_path_factory):
    require_avx2()
    folder = tmp_path_factory.mktemp("example")
    source = folder / "examples" / "bazel"
    shutil.copytree(EXAMPLES / "bazel", source)
    (source / "third_party").mkdir()
    (source / "third_party" / "ansor_deploy").symlink_to(hook_folder("bazel"))
    tool = observed_program(folder / "bin")
    bazel.prepare(source, folder / "base", tool)
    made = Example(bazel, source, folder / "base", tool)
    made.run("build", "//...")
    return made


def test_it_prints_what_the_model_computes(example):
    assert_classifies(example.made("classify"), example.made("stripes.so"))


def test_what_the_page_says(example):
    (block,) = [one for one in parts(PAGE) if "//:classify" in getattr(one, "text", "")]
    # As functions: another PATH would have Bazel build everything again.
    bazel = shlex.join(example.bazel.command(example.source))
    own = f'bazel() {{ command {bazel} "$@"; }}\nansor-deploy() {{ {example.tool} "$@"; }}\n'
    shutil.rmtree(example.source / "third_party")  # the page makes it, the same
    done = subprocess.run(
        ["/bin/bash", "-ec", own + block.text],
        cwd=example.source.parents[1],
        text=True,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.count(" PASSED ") == 2
    assert "falling    0.8" in done.stdout


def test_the_library_and_its_manifest_are_among_the_runfiles(example):
    runfiles = example.made("classify.runfiles") / "classify"
    assert {"stripes.so", "stripes.json"} <= {path.name for path in runfiles.iterdir()}


def test_a_model_trained_again_serves_the_same_program(example):
    program, path = example.made("classify"), example.source / "stripes.onnx"
    before = program.stat().st_mtime_ns
    proto = onnx.load(path)
    for tensor in proto.graph.initializer:
        values = numpy_helper.to_array(tensor) * 0.5
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    onnx.save(proto, path)
    example.run("build", "//...")
    assert program.stat().st_mtime_ns == before
    assert_classifies(program, example.made("stripes.so"), path)


def test_tuning_is_asked_for_and_writes_into_the_sources(example, tmp_path):
    assert not example.made("stripes_tune").exists()
    lock = example.source / "stripes.lock"
    lock.unlink()
    tune = ("run", "//:stripes_tune", "--", "--registry", str(tmp_path / "r.db"), "--trials")
    example.run(*tune, "8")
    tuned = lock.read_bytes()
    assert b'"record"' in tuned
    example.run("build", "//:stripes")
    example.run(*tune, "0")
    assert lock.read_bytes() == tuned
