"""The rules in a Bazel workspace, in its sandbox; Bazel asks for nothing that it knows."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers.debian_bazel import bin_folder
from helpers.hooked import Tool
from helpers.lab import DESCRIPTOR, descriptor, net, save
from helpers.scenarios import Scenarios

from ansor_deploy.ship.integrations import hook_folder

SERVER_IS_GONE = 37

WORKSPACE = """\
local_repository(name = "ansor_deploy", path = "{hooks}")
load("@ansor_deploy//:repositories.bzl", "ansor_deploy_repositories")
ansor_deploy_repositories()
load("@ansor_deploy//:debian.bzl", "debian_repositories")
debian_repositories()
"""
BUILD = """\
load("@ansor_deploy//:defs.bzl", "ansor_model")
"""
MODEL = """
ansor_model(
    name = "{name}",
    model = "{model}",
    data = ["{weights}"],
    descriptor = "board.toml",
    lock = "models.lock",
    rules = ["rule.py"],
)
"""


class BazelBuild(Tool):
    """All models are targets of one package. bazel: the program, from its fixture.

    options: of `bazel build`.
    """

    programs = ("bazel",)
    compares = "content"
    bazel = None

    def __init__(self):
        self.options = []

    def describe(self, project):
        self.bazel.prepare(project.source, _base(project), project.program)
        workspace = WORKSPACE.format(hooks=hook_folder("bazel"))
        (project.source / "WORKSPACE").write_text(workspace)
        text = BUILD + "".join(_target(name, file) for name, file in project.models.items())
        (project.source / "BUILD").write_text(text)

    def command(self, project, jobs):
        return self.bazel.command(project.source, "build", f"--jobs={jobs}", *self.options, "//...")

    def output(self, project, name):
        return bin_folder(_base(project)) / f"{name}.so"


def _base(project):
    return project.program.parents[1] / "base"


def _target(name, file):
    weights = file.removesuffix(".onnx") + ".weights"
    return MODEL.format(name=name, model=file, weights=weights)


class TestBazel(Scenarios):
    """What differs: no line of a lock that a model does not use has it built again."""

    tool = BazelBuild()

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _program(cls, bazel):
        cls.tool.bazel = bazel

    @pytest.fixture
    def options(self):
        """Of the builds of one test."""
        yield self.tool.options
        self.tool.options.clear()

    @pytest.fixture
    def project(self, ready):
        project = ready.again()
        assert project.build().code == 0  # its outputs were of the test before
        return project

    def test_an_unused_record_changed(self, project, lab):
        lab.lock_with_another_unused(project.lock)
        build = project.build()
        assert (build.code, build.calls, build.written) == (0, {}, set())

    def test_a_record_deleted(self, project, lab):
        before = project.contents()
        missing = lab.lock_that_lacks_one(project.lock)
        build = project.build()
        assert (build.code, build.calls) == (1, {})
        assert "(Exit 5)" in build.said
        assert "models.lock: error: it lacks 1 of the" in build.said
        assert missing in build.said
        lab.lock(project.lock)
        assert project.build().code == 0
        assert project.contents() == before

    def test_the_descriptor_changed(self, project, lab):
        project.board.write_text("# Says nothing.\n" + DESCRIPTOR)
        build = project.build()
        assert (build.code, build.codes, build.changed) == (0, {"net": 0}, set())
        project.board.write_text(DESCRIPTOR + "l2_bytes = 131072\n")
        build = project.build()
        assert (build.code, build.calls) == (1, {})
        assert "(Exit 5)" in build.said
        assert "models.lock: error: it was made for another board; L2 cache: " in build.said
        assert "again: bazel run //:net_tune" in build.said
        lab.lock_for(project.lock, descriptor(project.board))
        assert self.rebuilt(project).changed == {"net"}
        assert project.manifest()["target"]["l2_bytes"] == 131072

    def test_odd_paths(self, made, reference):
        """Of files: Bazel itself refuses a workspace whose path has a space, and gets lost in ù."""
        project = made({"net": "mödel one.onnx"})
        build = project.build()
        assert (build.code, build.codes) == (0, {"net": 0})
        assert project.contents()[".so"] == reference.contents[".so"]
        assert project.build().calls == {}
        save(net(output="z"), project.source / "mödel one.onnx")
        self.rebuilt(project)

    def test_a_project_is_not_read(self, project, lab, options):
        """Without a sandbox the tool sees it, and would refuse what stands in it."""
        options.append("--spawn_strategy=local")
        (project.source / "ansor-deploy.toml").write_text("what = 1")
        lab.lock_with_another_used(project.lock)
        self.rebuilt(project)

    def test_bazel_killed_in_mid_build(self, project, lab):
        lab.lock_with_another_used(project.lock)
        calls, server = project.program.with_name("calls"), _base(project) / "server"
        before = calls.read_text().count('"build"')
        with ThreadPoolExecutor() as pool:
            building = pool.submit(project.build)
            while calls.read_text().count('"build"') == before and not building.done():
                time.sleep(0.02)
            os.kill(int((server / "server.pid.txt").read_text()), signal.SIGKILL)
            build = building.result()
        assert (build.code, build.codes) == (SERVER_IS_GONE, {"net": None})
        self.rebuilt(project)
        assert lab.another.id in {task["record"] for task in project.manifest()["tasks"]}

    def test_a_cache_on_disk_serves_a_clean_checkout(self, project, lab, options, tmp_path):
        options.append(f"--disk_cache={tmp_path}")
        lab.lock_with_another_used(project.lock)
        self.rebuilt(project)
        before = project.contents()
        assert self.tool.bazel.run(project.source, "clean").returncode == 0
        assert project.contents() == {}
        build = project.build()
        assert (build.code, build.calls) == (0, {})
        assert project.contents() == before
