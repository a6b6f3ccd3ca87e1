"""A board that this machine emulates: Debian 12 for arm64 on a Cortex-A53, behind SSH.

The system is made once, by mmdebstrap, and kept in a cache; it has Python and none of our packages.
Logins on an OpenSSH server on loopback end in that system. What they write goes to a layer in
memory. The layer and all mounts belong to the server alone (a mount namespace), and end with it.

By hand, as root; prints how to log in, and runs until Ctrl-C:

    PYTHONPATH=tests python -m helpers.arm64
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helpers.sshd import SSHD, Sshd

CPU = "cortex-a53"
RELEASE = "bookworm"
MIRROR = "http://deb.debian.org/debian"
# Packages that a board with Python has, and Debian's minimal system lacks.
PACKAGES = ("python3",)
WHEELS = ("apache-tvm==0.27.0.post1", "apache-tvm-ffi>=0.1.14.post0,<0.1.15", "numpy>=1.26")
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux2014_aarch64")

_QEMU = "/usr/bin/qemu-aarch64-static"
_PROGRAMS = ("mmdebstrap", "arch-test", "unshare", "chroot", "ssh-keygen", _QEMU)
_REMEDY = "apt-get install mmdebstrap arch-test qemu-user-static openssh-server"

# The first bytes of arm64 programs: the kernel runs such files by QEMU, also in a chroot.
_MAGIC = r"\x7fELF\x02\x01\x01" + r"\x00" * 9 + r"\x02\x00\xb7\x00"
_MASK = r"\xff" * 7 + r"\x00" + r"\xff" * 8 + r"\xfe\xff\xff\xff"
_EMULATED = rf"""
formats=/proc/sys/fs/binfmt_misc
[ -e $formats/register ] || mount -t binfmt_misc binfmt_misc $formats
[ -e $formats/qemu-aarch64 ] ||
    printf '%s' ':qemu-aarch64:M::{_MAGIC}:{_MASK}:{_QEMU}:F' > $formats/register
"""
_LAYERED = r"""
mount -t tmpfs board "$layer"
mkdir "$layer/new" "$layer/work" "$layer/root"
mount -t overlay -o "lowerdir=$base,upperdir=$layer/new,workdir=$layer/work" board "$layer/root"
mount -t proc proc "$layer/root/proc"
mount -t tmpfs shm "$layer/root/dev/shm"
"""
# Like sshd, it runs the user's command as a single argument of the user's shell, in the home.
_ENTER = r"""
exec env -i HOME=/root USER=root PATH=/usr/sbin:/usr/bin:/sbin:/bin QEMU_CPU={cpu} \
    chroot "{root}" /bin/sh -c 'cd; exec /bin/sh ${{0:+-c "$0"}}' "$SSH_ORIGINAL_COMMAND"
"""


def missing() -> str:
    """Why there can be no such board here, or "" if there can."""
    if os.geteuid() != 0:
        return "needs root, to mount and to chroot"
    absent = [name for name in _PROGRAMS if not shutil.which(name)]
    absent += [] if SSHD else ["sshd"]
    if absent:
        return f"needs {', '.join(absent)}: {_REMEDY}"
    probe = subprocess.run([*_private(_EMULATED), "true"], capture_output=True, check=False)
    return f"cannot emulate: {probe.stderr.decode().strip()}" if probe.returncode else ""


def cache() -> Path:
    """The folder for what takes minutes to make; the user's, though tests have another HOME."""
    home = pwd.getpwuid(os.getuid()).pw_dir
    named = os.environ.get("ANSOR_DEPLOY_TEST_CACHE")
    return Path(named) if named else Path(home, ".cache", "ansor-deploy-tests")


def base_root() -> Path:
    """The board's system as delivered, made if needed. Read only."""
    path = cache() / f"{RELEASE}-arm64"
    with _made_once(path) as fresh:
        if fresh:
            include = f"--include={','.join(PACKAGES)}"
            command = ["mmdebstrap", "--variant=minbase", "--arch=arm64", include]
            _run([*_private(_EMULATED), *command, RELEASE, str(fresh), MIRROR])
    return path


def site_packages() -> Path:
    """The packages that run a library on the board, of TVM the runtime only."""
    return wheels("site-packages-arm64", *WHEELS, "typing_extensions")


def wheels(name: str, *requirements: str) -> Path:
    """A folder of this name with packages for arm64, without their dependencies; made once."""
    path = cache() / name
    with _made_once(path) as fresh, tempfile.TemporaryDirectory() as folder:
        if fresh:
            platforms = [f"--platform={one}" for one in PLATFORMS]
            kind = ["--only-binary=:all:", "--python-version=3.11", "--implementation=cp"]
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *kind]
            _run([*command, *platforms, "--dest", folder, *requirements])
            for wheel in Path(folder).glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(fresh, filter(_wanted, archive.namelist()))
    return path


class Board:
    """The running board, reached by `sshd`; when started anew, it is as delivered."""

    def __init__(self, folder: Path, base: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._layer = layer = folder / "layer"
        layer.mkdir()
        enter = folder / "enter"
        enter.write_text(_ENTER.format(cpu=CPU, root=layer / "root"))
        forced = f"ForceCommand exec /bin/sh {enter}\n"
        prefix = _private(f'set -e; base="{base}"; layer="{layer}"' + _EMULATED + _LAYERED)
        self.sshd = Sshd(folder / "sshd", extra=forced, prefix=tuple(prefix)).start()

    @property
    def root(self) -> Path:
        """The board's files, seen from outside; the folder is missing while the board is off."""
        pid = self.sshd.pid if (self.sshd.folder / "pid").exists() else 0
        return Path(f"/proc/{pid}/root{self._layer}/root")

    def ssh(self, command: str, timeout: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run a command on the board by OpenSSH's client."""
        line = [*self.ssh_command(), command]
        return subprocess.run(line, capture_output=True, text=True, check=False, timeout=timeout)

    def ssh_command(self) -> list[str]:
        """The client's command line, up to the remote command."""
        options = ["-F", "none", "-i", str(self.sshd.key), "-p", str(self.sshd.port)]
        hosts = f"UserKnownHostsFile={self.sshd.folder}/known_hosts"
        new = "StrictHostKeyChecking=accept-new"
        return ["ssh", *options, "-o", hosts, "-o", new, f"root@{self.sshd.address}"]

    def processes(self) -> list[int]:
        """Ids of the processes that run on the board."""
        inside = os.stat(self.root)  # noqa: PTH116 - like the stat of processes that may vanish
        return [int(each.name) for each in Path("/proc").glob("[0-9]*") if _rooted(each, inside)]

    def stop(self) -> None:
        """Turn the board off, which leaves nothing behind. May be called twice."""
        for pid in self.processes() if self.root.exists() else ():
            os.kill(pid, signal.SIGKILL)
        self.sshd.stop()


def _wanted(member: str) -> bool:
    return not member.startswith("tvm/") or member.endswith("/libtvm_runtime.so")


def _rooted(process: Path, inside: os.stat_result) -> bool:
    try:
        return os.path.samestat((process / "root").stat(), inside)
    except OSError:  # the process has ended
        return False


def _private(script: str) -> list[str]:
    """A command prefix: with mounts of its own, run the script, and then the command."""
    shell = ["sh", "-ec", f'{script}\nexec "$@"', "sh"]
    return ["unshare", "--mount", "--propagation", "private", *shell]


@contextmanager
def _made_once(path: Path) -> Iterator[Path | None]:
    """A new folder that becomes `path` at the end, or None if that exists already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            yield None
            return
        fresh = path.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        yield fresh
        fresh.rename(path)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")


def main() -> None:
    """Run a board until Ctrl-C."""
    if reason := missing():
        sys.exit(reason)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        board = Board(Path(folder), base_root())
        print(f"up in {time.monotonic() - began:.1f} s; Ctrl-C ends it")
        print(*board.ssh_command())
        try:
            signal.pause()
        except KeyboardInterrupt:
            board.stop()


if __name__ == "__main__":
    main()
