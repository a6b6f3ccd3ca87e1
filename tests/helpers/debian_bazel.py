"""Debian's Bazel (bazel-bootstrap), run without a network, with a server for each workspace."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

SHARE = Path("/usr/share/bazel")

# Debian's copies of the repositories that Bazel would download.
FOLDERS = [
    SHARE / path for path in ("tools/skylib", "tools/platforms", "rules/java", "rules/proto")
]


def is_installed() -> bool:
    """Whether this Bazel and these repositories are installed."""
    return shutil.which("bazel") is not None and all(folder.exists() for folder in FOLDERS)


@dataclass
class Bazel:
    """A Bazel whose servers, caches and outputs lie in one folder."""

    folder: Path
    started: dict[Path, list[str]] = field(default_factory=dict)

    def prepare(self, workspace: Path, base: Path, tool: Path) -> None:
        """Write a workspace's .bazelrc. base: the folder for its outputs."""
        options = ("color=no", "curses=no", "noshow_progress", "symlink_prefix=/")
        lines = [f"build --{option}" for option in options]
        lines.append(f"build --repo_env=ANSOR_DEPLOY={tool}")
        lines.append(f"build --sandbox_writable_path={tool.parent}")
        (workspace / ".bazelrc").write_text("\n".join(lines) + "\n")
        limits = ["--host_jvm_args=-Xmx600m", "--max_idle_secs=120"]
        places = [f"--output_user_root={self.folder / 'root'}", f"--output_base={base}"]
        # The system's .bazelrc stays in use: it says where the rest of Debian's Bazel is.
        self.started[workspace] = ["bazel", "--nohome_rc", *places, *limits]

    def command(self, workspace: Path, *words: str) -> list[str]:
        """The command line of a Bazel command in a prepared workspace."""
        return [*self.started[workspace], *words]

    def run(self, workspace: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a Bazel command to its end."""
        command = self.command(workspace, *words)
        done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, check=False)
        print(done.stderr)
        return done

    def shut_down(self) -> None:
        """End all servers."""
        for workspace in self.started:
            self.run(workspace, "shutdown")


def bin_folder(base: Path, workspace: str = "__main__") -> Path:
    """The folder of targets' outputs below an output base. workspace: the name it gave itself."""
    return base / "execroot" / workspace / "bazel-out" / "k8-fastbuild" / "bin"
