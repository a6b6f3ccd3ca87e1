"""What the tests of all build systems share: tuned records, and a build without any of them."""

import pickle
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers import debian_bazel
from helpers.cli_inside import answer
from helpers.hooked import SUFFIXES, Project, Ready, observed_program, require
from helpers.hurry import short_times
from helpers.lab import Lab, make_lab
from helpers.turns import made_once

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("integrations")


@pytest.fixture(scope="session", autouse=True)
def _short_times():
    """Of what tests build by hand; a build system's builds are those of a user."""
    with short_times():
        yield


@pytest.fixture(scope="session")
def lab(tmp_path_factory) -> Lab:
    def make(folder):
        (folder / "lab").write_bytes(pickle.dumps(make_lab(folder)))

    made = made_once(tmp_path_factory, "lab", make) / "lab"
    return pickle.loads(made.read_bytes())  # noqa: S301 - a process of this run wrote it


@dataclass(frozen=True)
class Reference:
    """The outputs of `net` under the lock of the lab, built by hand, by suffix."""

    contents: dict[str, bytes]


@pytest.fixture(scope="session")
def reference(lab, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    lab.furnish(folder, "net.onnx")
    words = ["--lock", "models.lock", "--frozen", "--target", "board.toml", "--rules", "rule.py"]
    answer(folder, "build", "net.onnx", "-o", "out/net.so", "--header", *words)
    made = (folder / "out" / "net").with_suffix
    return Reference({suffix: made(suffix).read_bytes() for suffix in SUFFIXES})


@pytest.fixture(scope="class")
def made(request, lab, tmp_path_factory):
    """`made(models, folder)`: a new project for the class's `tool`, described but not built."""
    tool = request.cls.tool
    require(tool.programs)

    def make(models=None, folder=""):
        place = tmp_path_factory.mktemp(type(tool).__name__.lower())
        source, built = place / folder / "source", place / folder / "built"
        for new in (source, built):
            new.mkdir(parents=True)
        models = models or {"net": "net.onnx"}
        lab.furnish(source, *models.values())
        project = Project(tool, source, built, observed_program(place / "bin"), models)
        tool.describe(project)
        return project

    return make


@pytest.fixture(scope="class")
def ready(made, tmp_path_factory):
    """A project of the class's `tool` that was built once."""
    project = made()
    first = project.build()
    copy = tmp_path_factory.mktemp("copy")
    for folder in (project.source, project.built):
        shutil.copytree(folder, copy / folder.name, symlinks=True)
    return Ready(project, first, copy)


@pytest.fixture(scope="module")
def bazel(tmp_path_factory):
    if not debian_bazel.is_installed():
        pytest.skip("not installed: bazel-bootstrap, or Debian's packages of its repositories")
    made = debian_bazel.Bazel(tmp_path_factory.mktemp("bazel"))
    yield made
    made.shut_down()
