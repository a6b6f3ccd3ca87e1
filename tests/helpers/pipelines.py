"""CI services as far as the examples use them: their actions work on local folders.

A run has a fresh checkout, and what earlier runs have kept. Lines of a pipeline run in the shell
that the service would start.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from helpers.web import Quiet, serving

# A stand-in for GitHub's gh: it downloads the only release, or makes a new one.
_GH = """\
#!/bin/sh
set -e
test "$1" = release
if [ "$2" = download ]; then
    test -d {kept}/release
    mkdir -p released
    cp {kept}/release/* released/
else
    shift 3
    mkdir -p {kept}/release
    cp "$@" {kept}/release/
fi
"""


@dataclass
class Service:
    """A CI service with a repository, and a folder of what it keeps between runs.

    failed: the name of the step, or the line, at which the last run failed; "" if it did not.
    """

    folder: Path
    tool: Path
    repository: Path = field(init=False)
    kept: Path = field(init=False)
    failed: str = ""
    said: str = ""

    def __post_init__(self) -> None:
        self.repository, self.kept = self.folder / "repository", self.folder / "kept"
        self.repository.mkdir()
        self.kept.mkdir()
        (self.tool.parent / "python").symlink_to(sys.executable)
        gh = self.tool.parent / "gh"
        gh.write_text(_GH.format(kept=self.kept))
        gh.chmod(0o755)

    @contextmanager
    def _checkout(self) -> Iterator[Path]:
        """A fresh copy of the repository, always at the same path."""
        workspace = self.folder / "workspace"
        shutil.rmtree(workspace, ignore_errors=True)
        shutil.rmtree(self.folder / "home", ignore_errors=True)
        shutil.copytree(self.repository, workspace)
        self.failed = self.said = ""
        yield workspace

    def _shell(self, line: str, name: str, workspace: Path, **variables: str) -> bool:
        """Run a line as the service does; whether it succeeded."""
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("XDG_")},
            "PATH": f"{self.tool.parent}:{os.environ['PATH']}",
            "CI": "true",
            "HOME": str(self.folder / "home"),
            **variables,
        }
        command = ["bash", "-e", "-c", line]
        done = subprocess.run(
            command, cwd=workspace, env=environment, capture_output=True, text=True, check=False
        )
        self.said += done.stdout + done.stderr
        self.failed = "" if done.returncode == 0 else name
        return not self.failed

    def _keep(self, name: str, paths: list[Path], workspace: Path) -> None:
        """Keep paths, with their places below the workspace or the home directory."""
        for path in paths:
            if path.exists():
                place = self.kept / name / path.relative_to(self.folder)
                shutil.copytree(path, place, dirs_exist_ok=True)

    def _bring_back(self, name: str) -> None:
        """Restore the paths that were kept."""
        if (kept := self.kept / name).exists():
            shutil.copytree(kept, self.folder, dirs_exist_ok=True)


class GitHub(Service):
    """GitHub Actions: jobs consist of steps; `uses` names an action, and `run` has lines."""

    def run(self, pipeline: dict[str, Any], job: str, *, tag: bool = False) -> Path:
        """Run a job; returns the workspace. tag: whether it is for a tag, which makes a release."""
        variables = {**pipeline["env"], "GITHUB_REF_NAME": "v1"}
        with self._checkout() as workspace:
            variables["GITHUB_STEP_SUMMARY"] = str(self.folder / "summary.md")
            steps = [s for s in pipeline["jobs"][job]["steps"] if tag or "if" not in s]
            for step in steps:
                if "uses" in step:
                    self._action(step, workspace, job)
                elif not self._step(step, workspace, variables):
                    return workspace
            self._keep(f"{job}-cache", self._cached(steps, workspace), workspace)
            return workspace

    def _step(self, step: dict[str, Any], workspace: Path, variables: dict[str, str]) -> bool:
        if step["name"] == "Install":  # the tested version is installed already
            return True
        return self._shell(step["run"], step["name"], workspace, **variables)

    def _action(self, step: dict[str, Any], workspace: Path, job: str) -> None:
        action = step["uses"].partition("@")[0]
        if action == "actions/cache":
            self._bring_back(f"{job}-cache")
        elif action == "actions/upload-artifact":
            source, place = workspace / step["with"]["path"], self.kept / step["with"]["name"]
            place.mkdir(exist_ok=True)
            copy = partial(shutil.copytree, dirs_exist_ok=True) if source.is_dir() else shutil.copy
            copy(source, place)
        else:
            assert action in {"actions/checkout", "actions/setup-python"}

    def _cached(self, steps: list[dict[str, Any]], workspace: Path) -> list[Path]:
        (step,) = [s for s in steps if s.get("uses", "").startswith("actions/cache@")]
        lines = step["with"]["path"].splitlines()
        home = str(self.folder / "home")
        return [workspace / line.replace("~", home) for line in lines]


class GitLab(Service):
    """GitLab: jobs consist of lines; the last successful job's artefacts are served by HTTP."""

    def run(self, pipeline: dict[str, Any], job: str) -> Path:
        """Run a job; returns the workspace."""
        work = pipeline[job]
        with self._checkout() as workspace, self._server() as address:
            project = str(workspace)
            variables = {
                name: value.replace("$CI_PROJECT_DIR", project)
                for name, value in pipeline["variables"].items()
            }
            variables |= {"CI_API_V4_URL": address, "CI_PROJECT_ID": "7"}
            variables |= {"CI_JOB_TOKEN": "token", "CI_DEFAULT_BRANCH": "main"}
            self._bring_back(f"{job}-cache")
            for line in work["script"]:
                if not self._shell(line, line, workspace, **variables):
                    return workspace
            paths = [workspace / path for path in work["cache"]["paths"]]
            self._keep(f"{job}-cache", paths, workspace)
            self._archive(workspace, work["artifacts"]["paths"])
            return workspace

    @property
    def _served(self) -> Path:
        return self.kept / "projects" / "7" / "jobs" / "artifacts" / "main"

    def _archive(self, workspace: Path, paths: list[str]) -> None:
        """Store the artefacts as those of the branch."""
        self._served.mkdir(parents=True, exist_ok=True)
        words = [sys.executable, "-m", "zipfile", "-c", str(self._served / "download"), *paths]
        subprocess.run(words, cwd=workspace, check=True)

    def _server(self) -> AbstractContextManager[str]:
        """Serve the artefacts; 404 as long as there are none."""
        return serving(partial(Quiet, directory=str(self.kept)))
