"""Real OpenSSH servers on loopback, run as the current user, each a host of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
USER = getpass.getuser()

CONFIG = """\
ListenAddress {address}
Port {port}
HostKey {folder}/host_key
PidFile {folder}/pid
AuthorizedKeysFile {folder}/authorized_keys
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
LogLevel VERBOSE
"""


def make_key(path: Path, passphrase: str = "", kind: str = "ed25519") -> Path:
    """Make a key pair with OpenSSH's own tool."""
    path.unlink(missing_ok=True)
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", str(path)]
    subprocess.run(command, check=True)
    return path


def fingerprint(public: Path) -> str:
    """The fingerprint that ssh-keygen prints."""
    command = ["ssh-keygen", "-lf", str(public)]
    output = subprocess.run(command, check=True, capture_output=True, text=True)
    return output.stdout.split()[1]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Sshd:
    """A server. key: logs in. extra: further lines of sshd_config. prefix: a command to run it by.

    The prefix may for example enter a network namespace. Unless `extra` names another home, the
    home is empty: programs that start at a login may take a lock, and one that a test kills would
    leave its lock behind in the user's home, for all later logins.
    """

    def __init__(
        self,
        folder: Path,
        extra: str = "",
        address: str = "127.0.0.1",
        prefix: tuple[str, ...] = (),
    ) -> None:
        self.folder = folder
        self.extra = extra
        self.address = address
        self.prefix = prefix
        self.port = free_port()
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.key = make_key(folder / "user_key")
        self.host_key = make_key(folder / "host_key")
        self.authorise(self.key)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return int((self.folder / "pid").read_text())

    @property
    def url(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"ssh://{USER}@{host}:{self.port}"

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.host_key.with_suffix(".pub"))

    def authorise(self, *keys: Path) -> None:
        lines = [key.with_name(key.name + ".pub").read_text() for key in keys]
        (self.folder / "authorized_keys").write_text("".join(lines))

    def start(self) -> Sshd:
        config = self.folder / "sshd_config"
        text = CONFIG.format(address=self.address, port=self.port, folder=self.folder)
        # Only the first SetEnv counts.
        config.write_text(f"{text}{self.extra}SetEnv HOME={self.home}\n")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # for root's sshd to chroot to
        with (self.folder / "log").open("ab") as log:
            command = [*self.prefix, str(SSHD), "-D", "-e", "-f", str(config)]
            self._process = subprocess.Popen(command, stderr=log)
        self._await()
        return self

    def _await(self) -> None:
        """Wait for the pid file, made once the server listens, and complete with its line end."""
        deadline = time.monotonic() + 30
        pid = self.folder / "pid"
        while not (pid.exists() and pid.read_text().endswith("\n")):
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.02)

    def stop(self) -> None:
        """Kill the server, its sessions and their processes, as in a power cut."""
        if self._process is None:
            return
        server = psutil.Process(self._process.pid)
        for process in (server, *server.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()
        self._process = None
        (self.folder / "pid").unlink(missing_ok=True)

    def new_host_key(self) -> None:
        """Restart with a new host key, as a board with a new system would have."""
        self.stop()
        self.host_key = make_key(self.folder / "host_key")
        self.start()


@pytest.fixture
def sshd(tmp_path):
    """`sshd(name)` starts a server; all of them end after the test."""
    if SSHD is None or shutil.which("ssh-keygen") is None:
        pytest.skip("needs OpenSSH's server: apt-get install openssh-server")
    servers = []

    def start(name="board", **options):
        servers.append(Sshd(tmp_path / f"sshd-{name}", **options))
        return servers[-1].start()

    yield start
    for server in servers:
        server.stop()
