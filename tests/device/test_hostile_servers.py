"""Whatever answers at a board's address, and whatever runs there: refused soon, in plain words."""

import json
import socket
import threading
from contextlib import closing, suppress

import paramiko
import pytest
from helpers.cli_inside import program
from helpers.hostile_frames import EVIL, HELLO, instead, raw

from ansor_deploy.devices import board as boards
from ansor_deploy.devices import facts, probe, ssh
from ansor_deploy.devices.board import BoardSite
from ansor_deploy.devices.frames import MARK, pack
from ansor_deploy.devices.inventory import parse_url
from ansor_deploy.devices.known_hosts import HostKey
from ansor_deploy.errors import DeviceError, DeviceLost

# What is no SSH server


def endless(data):
    def say(connection):
        while True:
            connection.sendall(data)

    return say


GREETING = b"SSH-2.0-OpenSSH_9.9\r\n"
SERVERS = {
    "a line without end": endless(b"A" * 65536),
    "lines without end": endless(EVIL.encode() + b"\n"),
    "evil words": endless(b"SSH-9.9-" + EVIL.encode() + b"\r\n"),
    "a packet of 4 GB": lambda to: to.sendall(GREETING + b"\xff\xff\xff\xf4" + bytes(65536)),
    "no keys": lambda to: to.sendall(GREETING + b"\0\0\0\x1c\x0a\x14" + b"\xff" * 26),
    "another type": lambda to: to.sendall(GREETING + b"\0\0\0\x0c\x0a\xfe" + bytes(10)),
    "an end": lambda to: to.close(),
}


@pytest.fixture
def listening():
    """`listening(say)`: the port of a server that says that to whoever connects."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve(say):
            def answer():
                connection, _ = server.accept()
                with suppress(OSError):
                    say(connection)
                    connection.recv(1 << 20)

            threading.Thread(target=answer, daemon=True).start()
            return server.getsockname()[1]

        yield serve


@pytest.mark.parametrize("name", SERVERS)
def test_what_is_no_ssh_server(name, listening, inventory, monkeypatch):
    monkeypatch.setattr(ssh, "HANDSHAKE_SECONDS", 2.0)
    port = listening(SERVERS[name])
    with pytest.raises(DeviceLost, match="does not speak SSH") as lost:
        ssh.offered_key(parse_url("pi", f"ssh://pi@127.0.0.1:{port}", "host"), inventory)
    assert lost.value.message.isprintable()
    assert len(lost.value.message) < 500


# What is none of OpenSSH's


class Anyone(paramiko.ServerInterface):
    """A server that lets anyone in, and whose commands end with any status."""

    def __init__(self, status):
        self.status = status

    def get_allowed_auths(self, username):
        return "publickey"

    def check_auth_publickey(self, username, key):
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind, number):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel, command):
        def run():
            channel.send(b"said")
            channel.send_exit_status(self.status)
            channel.close()

        threading.Timer(0.1, run).start()
        return True


@pytest.mark.parametrize(("status", "found"), [(0, 0), (255, 255), (256, -1), (2**32 - 1, -1)])
def test_statuses_that_no_program_has(status, found, listening, inventory, sshd, home):
    board = sshd()
    key = paramiko.PKey.from_path(board.host_key)
    transports = []

    def serve(connection):
        transports.append(paramiko.Transport(connection))
        transports[-1].add_server_key(key)
        transports[-1].start_server(server=Anyone(status))
        transports[-1].join()

    device = parse_url("pi", f"ssh://pi@127.0.0.1:{listening(serve)}", "host", str(board.key))
    inventory.put(device)
    inventory.trust("pi", HostKey(key.get_name(), key.asbytes()))
    with closing(ssh.connect(device, inventory)) as connection:
        ran = connection.run("anything")
    assert (ran.stdout, ran.status) == (b"said", found)


# What runs on a board that is trusted


def only(programs):
    """Lines of sshd_config: those programs come first, and no profile of this machine's."""
    return f"SetEnv PATH={programs}:/usr/bin:/bin HOME={programs}\n"


@pytest.fixture
def connected_to(sshd, device, tmp_path):
    """`connected_to(script)`: a connection to a board whose python3 is that shell script."""
    programs = tmp_path / "programs"
    programs.mkdir()

    def connect(script):
        python = programs / "python3"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        return ssh.connect(device(sshd(extra=only(programs))))

    return connect


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("yes", "output does not end"),
        ("cat /dev/zero", "output does not end"),
        ("while :; do printf x; sleep 0.1; done", "did not end within 2 s"),
        ("yes >&2", "did not end within 2 s"),
        (r"printf 'a\n\033[2J\007evil' >&2; exit 1", r"what machine it is: \\x1b\[2J\\x07evil"),
        (r"printf 'a\n\342\200\256evil' >&2; exit 255", r"what machine it is: \\u202eevil"),
        ("head -c 200000 /dev/zero | tr '\\0' '['", "what machine it is: status 0"),
        ("kill -KILL $$", "what machine it is: status -1"),
        ("head -c 90000 /dev/zero | tr '\\0' 'A' >&2; exit 3", r"what machine it is: A+\.\.\.\n"),
    ],
)
def test_a_python_that_is_none(script, reason, connected_to, monkeypatch):
    monkeypatch.setattr(facts, "_PROBE_SECONDS", 2.0)
    with closing(connected_to(script)) as connection:
        with pytest.raises(DeviceError, match=reason) as caught:
            facts.look_at("pi", connection)
        assert caught.value.message.isprintable()


SESSIONS = {
    "lists without end": [MARK + raw(b"[" * 100_000)],
    "no session": [MARK + pack({**HELLO, "session": 5})],
    "a head of 2 GB": [MARK + b"\x7f\xff\xff\xff" * 4],
    "a login that prints": [EVIL.encode() * 200_000],
    "a greeting and nonsense": instead(1, raw(b"{}")),
    "waiting for ever": [MARK + pack({"says": "waiting", "holder": EVIL}) * 5000],
}


@pytest.mark.parametrize("name", SESSIONS)
def test_an_agent_that_is_none(name, connected_to, monkeypatch, tmp_path):
    said = tmp_path / "said"
    said.write_bytes(b"".join(SESSIONS[name]))
    good = json.dumps({**probe.facts(), "cache": "/nowhere"})
    script = f"case $* in *'agent import'*) cat {said}; sleep 100;; *) echo '{good}';; esac"
    monkeypatch.setattr(boards, "install", lambda *_: "/nowhere")
    heard = []
    site = BoardSite("pi", lambda: connected_to(script), 1, waiting=heard.append)
    with pytest.raises(DeviceLost, match="pi is lost: its agent") as lost:
        site.start()
    assert lost.value.message.isprintable()
    assert "".join(heard).isprintable()


SAYS = {"python3": "exit 1", "uname": r"printf '\033[2Jevil'", "getconf": "echo 64"}


def test_a_command_on_a_hostile_board(sshd, device, tmp_path):
    """As a user meets it: an exit code of its own, and nothing that a terminal obeys."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for tool, says in SAYS.items():
        (programs / tool).write_text(f"#!/bin/sh\n{says}\n")
        (programs / tool).chmod(0o755)
    device(sshd(extra=only(programs)))
    result = program(tmp_path, "devices", "doctor", "pi")
    assert result.returncode == 4
    said = result.stdout + result.stderr
    assert "Traceback" not in said
    assert said.replace("\n", "").isprintable()
