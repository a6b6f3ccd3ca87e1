"""Connections to real sshds, and what becomes of them when something goes wrong."""

import hashlib
import os
import signal
import socket
import subprocess
import threading
from contextlib import closing, suppress

import psutil
import pytest
from helpers.sshd import USER, make_key

from ansor_deploy.devices import channel, ssh
from ansor_deploy.devices.inventory import parse_url
from ansor_deploy.errors import DeviceError, DeviceLost, UsageError

# Commands


def test_what_a_command_leaves(connected):
    _, connection = connected
    ran = connection.run("cat; echo wrong >&2; exit 3", b"words")
    assert (ran.status, ran.stdout, ran.stderr) == (3, b"words", "wrong\n")
    assert connection.run("kill -KILL $$").status == -1
    assert connection.run("no-such-command").status == 127


def test_much_goes_up_whole(connected):
    data = os.urandom(30 << 20)
    ran = connected[1].run("sha256sum", data, timeout=120)
    assert ran.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_both_ways_at_once_do_not_wait_for_each_other(connected, monkeypatch):
    monkeypatch.setattr(channel, "_MOST_STDOUT", 1 << 24)
    data = os.urandom(8 << 20)  # several times what both windows hold
    ran = connected[1].run("tee /dev/stderr", data, timeout=120)
    assert ran.stdout == data
    assert ran.stderr


def test_output_without_end(connected):
    with pytest.raises(DeviceError, match="does not end"):
        connected[1].run("cat /dev/zero")
    assert connected[1].run("echo on").stdout == b"on\n"


def test_what_a_terminal_would_obey_is_spelled_out(connected):
    assert connected[1].run(r"printf 'a\033[31mb\n' >&2").stderr == "a\\x1b[31mb\n"


def test_stdin_that_is_not_read(connected):
    assert connected[1].run("echo done", bytes(8 << 20), timeout=60).stdout == b"done\n"


def test_a_stream(connected):
    with closing(connected[1].open("echo note >&2; cat")) as stream:
        stream.write(b"one", timeout=5)
        assert stream.read(100, timeout=5) == b"one"
        with pytest.raises(TimeoutError):
            stream.read(100, timeout=0.1)
        stream.write(b"two", timeout=5)
        assert stream.read(2, timeout=5) == b"tw"
        assert stream.complaint() == "note\n"


def test_a_reader_and_a_writer_keep_their_own_time(connected):
    with closing(connected[1].open("cat >/dev/null; echo end")) as stream:
        writer = threading.Thread(target=stream.write, args=(bytes(16 << 20), 60))
        writer.start()
        with pytest.raises(TimeoutError):
            stream.read(100, timeout=0.2)
        writer.join()
        stream._channel.shutdown_write()
        assert stream.read(100, timeout=30) == b"end\n"


def test_no_more_sessions(sshd, device):
    board = sshd(extra="MaxSessions 1\n")
    with closing(ssh.connect(device(board))) as connection, closing(connection.open("cat")):
        with pytest.raises(DeviceError, match="allows no session") as refused:
            connection.run("true")
        assert not isinstance(refused.value, DeviceLost)


def test_the_end_of_a_stream(connected):
    with closing(connected[1].open("echo last words; exit 1")) as stream:
        assert stream.read(100, timeout=5) == b"last words\n"
        assert stream.read(100, timeout=5) == b""


def test_a_command_that_does_not_end(connected):
    with pytest.raises(DeviceLost, match="did not end within 1 s"):
        connected[1].run("sleep 60", timeout=1)
    assert connected[1].run("echo on").stdout == b"on\n"


# Who it is


def test_the_users_own_known_hosts_count(sshd, device, home):
    board = sshd()
    pi = device(board, trusted=False)
    with pytest.raises(DeviceError, match="its host key is not known"):
        ssh.connect(pi)
    write_known_hosts(home, board, board.host_key)
    ssh.connect(pi).close()


def test_hashed_names_count(sshd, device, home):
    board = sshd()
    write_known_hosts(home, board, board.host_key)
    command = ["ssh-keygen", "-q", "-H", "-f", str(home / ".ssh" / "known_hosts")]
    subprocess.run(command, check=True, capture_output=True)
    assert "|1|" in (home / ".ssh" / "known_hosts").read_text()
    ssh.connect(device(board, trusted=False)).close()


def test_another_key_in_known_hosts_is_a_change(sshd, device, home, tmp_path):
    board = sshd()
    write_known_hosts(home, board, make_key(tmp_path / "former"))
    with pytest.raises(DeviceError, match="HAS CHANGED"):
        ssh.connect(device(board, trusted=False))


def test_a_revoked_key_is_refused_even_if_pinned(sshd, device, home):
    board = sshd()
    pi = device(board)
    write_known_hosts(home, board, board.host_key, "@revoked ")
    with pytest.raises(DeviceError, match="is revoked"):
        ssh.connect(pi)


def test_a_pin_comes_before_known_hosts(sshd, device, home, inventory):
    board = sshd()
    pi = device(board)
    board.new_host_key()
    write_known_hosts(home, board, board.host_key)
    with pytest.raises(DeviceError, match="HAS CHANGED"):
        ssh.connect(pi)


def test_the_kind_of_key_that_is_known_is_asked_for(sshd, device, home, tmp_path):
    rsa = make_key(tmp_path / "rsa_host_key", kind="rsa")
    board = sshd(extra=f"HostKey {rsa}\n")
    write_known_hosts(home, board, rsa)
    with closing(ssh.connect(device(board, trusted=False))) as connection:
        assert connection.host_key.kind == "ssh-rsa"


def write_known_hosts(home, board, key, marker=""):
    kind, data = key.with_name(key.name + ".pub").read_text().split()[:2]
    line = f"{marker}[{board.address}]:{board.port} {kind} {data}\n"
    (home / ".ssh" / "known_hosts").write_text(line)


# The way there


def test_an_alias_of_ssh_config(sshd, inventory, home):
    board = sshd()
    text = f"""
        Include extra
        Host board
          HostName {board.address}
          Port {board.port}
          IdentityFile {board.key}
    """
    (home / ".ssh" / "config").write_text(text)
    (home / ".ssh" / "extra").write_text(f"Host board other\n  User {USER}\n")
    alias = parse_url("pi", "ssh://board", "host")
    inventory.put(alias)
    inventory.trust("pi", ssh.offered_key(alias, inventory))
    with closing(ssh.connect(alias)) as connection:
        assert connection.run("id -un").stdout.decode().strip() == USER


def test_ipv6(sshd, device):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    ssh.connect(device(sshd(address="::1"))).close()


def test_a_config_that_cannot_be_read(home):
    (home / ".ssh" / "config").write_text("Host [\n  Port many\nHost *\n  Port many\n")
    with pytest.raises(UsageError, match="Port many"):
        ssh.connect(parse_url("pi", "ssh://board", "host"))


def test_through_a_device(sshd, device, inventory):
    gate, board = sshd("gate"), sshd("board")
    device(gate, "gate")
    pi = device(board, jump="gate")
    with closing(ssh.connect(pi)) as connection:
        data = os.urandom(4 << 20)
        ran = connection.run("sha256sum", data, timeout=60)
        assert ran.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()
        gate.stop()
        with pytest.raises(DeviceLost):
            connection.run("true")


def test_through_a_host_of_ssh_config(sshd, inventory, home):
    gate, board = sshd("gate"), sshd("board")
    text = f"""
        Host gate
          HostName {gate.address}
          Port {gate.port}
          IdentityFile {gate.key}
        Host {board.address}
          ProxyJump gate
    """
    (home / ".ssh" / "config").write_text(text)
    pi = parse_url("pi", board.url, "host", str(board.key))
    with pytest.raises(DeviceError, match="jump host gate: its host key is not known"):
        ssh.connect(pi)
    write_known_hosts(home, gate, gate.host_key)
    inventory.trust("pi", ssh.offered_key(pi, inventory))
    with closing(ssh.connect(pi)) as connection:
        gate.stop()
        with pytest.raises(DeviceLost):
            connection.run("true")


def test_jump_hosts_in_a_circle(inventory):
    for name, jump in (("a", "b"), ("b", "a")):
        inventory.put(parse_url(name, "ssh://127.0.0.1", "host", jump=jump))
    with pytest.raises(DeviceError, match="in a circle"):
        ssh.connect(inventory.get("a"))


def test_a_jump_host_that_leads_nowhere(sshd, device, inventory):
    gate, board = sshd("gate"), sshd("board")
    device(gate, "gate")
    pi = device(board, jump="gate")
    board.stop()
    with pytest.raises(DeviceLost, match="no way on to 127"):
        ssh.connect(pi)


# Loss


def test_a_server_that_dies_in_the_middle(connected):
    board, connection = connected
    stream = connection.open("cat")
    killer = threading.Timer(0.3, board.stop)
    killer.start()
    with pytest.raises(DeviceLost):
        stream.read(1, timeout=60)
    killer.join()
    with pytest.raises(DeviceLost):
        stream.write(b"x", timeout=60)
    with pytest.raises(DeviceLost):
        connection.open("true")


def test_a_server_that_no_longer_answers(sshd, device, monkeypatch):
    """It is stopped: the network takes every byte, and nothing comes back."""
    monkeypatch.setattr(channel, "ASK_SECONDS", 0.2)
    monkeypatch.setattr(channel, "SILENT_SECONDS", 2)
    board = sshd()
    with closing(ssh.connect(device(board))) as connection:
        stream = connection.open("cat")
        sessions = psutil.Process(board.pid).children(recursive=True)
        for process in sessions:
            with suppress(psutil.NoSuchProcess):  # what helped with the login may have ended
                process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(DeviceLost):
                stream.read(1, timeout=60)
        finally:
            for process in sessions:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("says", [b"", b"220 mail.example ESMTP\r\n"])
def test_a_server_that_does_not_speak_ssh(monkeypatch, says):
    monkeypatch.setattr(ssh, "HANDSHAKE_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer():
            accepted.append(server.accept()[0])
            accepted[0].sendall(says)

        accepted = []
        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(DeviceLost, match="does not speak SSH"):
            ssh.connect(parse_url("pi", f"ssh://pi@127.0.0.1:{port}", "host"))
        thread.join()
        accepted[0].close()


def test_nobody_there(sshd):
    board = sshd()
    board.stop()
    with pytest.raises(DeviceLost, match="nothing listens at 127"):
        ssh.connect(parse_url("pi", board.url, "host"))
