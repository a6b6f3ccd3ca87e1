"""What every build system must do with a model, with one test for each scenario.

A test module has a subclass for each build system:

    class TestNinja(Scenarios):
        tool = Ninja()
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from helpers.cli_inside import program
from helpers.cli_process import everything, heed_permissions
from helpers.hooked import Build, Project, Tool
from helpers.lab import DESCRIPTOR, Lab, descriptor, net, save


class Scenarios:
    """Each test starts from a project that was built before, unless it makes its own."""

    tool: Tool
    at_once = 4

    @pytest.fixture
    def project(self, ready):
        return ready.again()

    def test_clean(self, ready, lab, reference):
        assert (ready.first.code, ready.first.codes) == (0, {"net": 0})
        assert ready.again().contents() == reference.contents

    def test_nothing_has_changed(self, project):
        for _ in range(2):
            build = project.build()
            assert (build.code, build.calls, build.written) == (0, {}, set())

    def test_a_model_touched(self, project):
        os.utime(project.source / "net.onnx")
        build = project.build()
        assert (build.code, build.written) == (0, set())
        assert build.codes == ({"net": 0} if self.tool.compares == "times" else {})
        assert all(call.heavy == () for call in build.calls.values())
        assert project.build().calls == {}

    def test_a_model_changed(self, project):
        save(net(output="z"), project.source / "net.onnx")
        build = self.rebuilt(project)
        assert build.changed == {"net"}
        assert [one["name"] for one in project.manifest()["outputs"]] == ["z"]

    def test_weights_changed(self, project):
        before, model = project.contents(), (project.source / "net.onnx").read_bytes()
        save(net(seed=5), project.source / "net.onnx")
        assert (project.source / "net.onnx").read_bytes() == model
        self.rebuilt(project)
        after = project.contents()
        assert after[".so"] != before[".so"]
        assert after[".h"] == before[".h"]

    def test_a_used_record_changed(self, project, lab: Lab):
        before = project.contents()
        lab.lock_with_another_used(project.lock)
        self.rebuilt(project)
        assert project.contents()[".so"] != before[".so"]
        used = {task["record"] for task in project.manifest()["tasks"]}
        assert lab.another.id in used
        assert lab.best.id not in used

    def test_an_unused_record_changed(self, project, lab: Lab):
        lab.lock_with_another_unused(project.lock)
        build = project.build()
        assert (build.code, build.codes, build.changed) == (0, {"net": 0}, set())
        assert build.written == set() or self.tool.compares == "content"
        assert project.build().calls == {}

    def test_a_record_deleted(self, project, lab: Lab):
        before = project.contents()
        missing = lab.lock_that_lacks_one(project.lock)
        build = project.build()
        assert build.code != 0
        assert build.codes == {"net": 5}
        assert missing in build.said
        assert build.written == set()
        lab.lock(project.lock)
        assert project.build().code == 0
        assert project.contents() == before

    def test_the_descriptor_changed(self, project, lab: Lab):
        project.board.write_text("# Says nothing.\n" + DESCRIPTOR)
        build = project.build()
        assert (build.code, build.codes, build.changed) == (0, {"net": 0}, set())
        assert build.written == set() or self.tool.compares == "content"
        project.board.write_text(DESCRIPTOR + "l2_bytes = 131072\n")
        build = project.build()
        assert build.code != 0
        assert build.codes == {"net": 5}
        assert "target" in build.said
        lab.lock_for(project.lock, descriptor(project.board))
        assert self.rebuilt(project).changed == {"net"}
        assert project.manifest()["target"]["l2_bytes"] == 131072

    def test_a_rule_changed(self, project):
        text = project.rule.read_text()
        project.rule.write_text(text.replace("LARGEST = 8192", "LARGEST = 4096"))
        assert project.rule.read_text() != text
        assert self.rebuilt(project).changed == {"net"}

    def test_killed_in_mid_write(self, project, lab: Lab):
        """Kill builds before each move of an output into place, over another lock's outputs."""
        locks = (lab.lock_with_another_used, lab.lock)
        whole = [project.contents()]
        locks[0](project.lock)
        moves = self.rebuilt(project).calls["net"].moves
        assert moves >= 3  # library, provenance and manifest
        whole.insert(0, project.contents())
        beside = _names(project)
        for moment in range(1, moves + 1):
            locks[moment % 2](project.lock)
            project.kill_at(moment)
            build = project.build()
            assert build.code != 0
            assert build.codes == {"net": None}
            project.kill_at(0)
            assert _is_said_to_be_whole(project) == (project.contents() in whole)
            assert project.build().code == 0
            assert project.contents() == whole[moment % 2]
            assert _names(project) == beside
            assert project.build().calls == {}

    def test_several_models_at_once(self, made):
        project = made({f"net{n}": f"net{n}.onnx" for n in range(self.at_once)})
        build = project.build(jobs=self.at_once)
        assert (build.code, build.codes) == (0, dict.fromkeys(project.models, 0))
        libraries = {project.output(name).read_bytes() for name in project.models}
        assert len(libraries) == self.at_once
        assert project.build(jobs=self.at_once).calls == {}
        os.utime(project.source / "net1.onnx")
        save(net(seed=50), project.source / "net2.onnx")
        build = project.build(jobs=self.at_once)
        assert (build.code, build.changed) == (0, {"net2"})
        assert set(build.calls) == {"net2"} | ({"net1"} if self.tool.compares == "times" else set())

    def test_odd_paths(self, made, reference):
        project = made({"net": "mödel one.onnx"}, "où est/le projet")
        build = project.build()
        assert (build.code, build.codes) == (0, {"net": 0})
        assert project.contents()[".so"] == reference.contents[".so"]
        assert project.build().calls == {}
        save(net(output="z"), project.source / "mödel one.onnx")
        self.rebuilt(project)

    def test_read_only_sources(self, made):
        project = made()
        before = everything(project.source)
        _forbid_writing(project.source)
        build = project.build(preexec_fn=heed_permissions)
        assert (build.code, build.codes) == (0, {"net": 0})
        assert everything(project.source) == before
        assert project.build(preexec_fn=heed_permissions).calls == {}

    def rebuilt(self, project: Project) -> Build:
        """Build what has changed, and check that a second build does nothing."""
        build = project.build()
        assert (build.code, build.codes, build.written) == (0, {"net": 0}, {"net"})
        assert project.build().calls == {}
        return build


def _names(project: Project) -> set[str]:
    return {path.name for path in project.output().parent.iterdir()}


def _is_said_to_be_whole(project: Project) -> bool:
    return program(project.source, "verify", project.output()).returncode == 0


def _forbid_writing(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
