"""Which keys open a board, and that none of them is told to anybody."""

import logging
import socket
import subprocess
from contextlib import contextmanager

import pytest
from helpers.sshd import make_key

from ansor_deploy.devices import identity, ssh
from ansor_deploy.errors import DeviceError


@contextmanager
def agent_with(folder, monkeypatch, *keys):
    """An ssh-agent that holds the keys."""
    sock = folder / "agent"
    command = ["ssh-agent", "-D", "-a", str(sock)]
    agent = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(sock))
        for key in keys:
            add = ["ssh-add", "-q", str(key)]
            while subprocess.run(add, check=False, capture_output=True).returncode == 2:
                assert agent.poll() is None
        yield
    finally:
        agent.kill()
        agent.wait()


def encrypt(key):
    command = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "geheim", "-f", str(key)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_kinds_of_key(sshd, device, tmp_path, kind):
    board = sshd()
    key = make_key(tmp_path / "key", kind=kind)
    board.authorise(key)
    ssh.connect(device(board, identity=key)).close()


def test_an_encrypted_key_needs_the_agent(sshd, device, caplog):
    board = sshd()
    pi = device(board)
    encrypt(board.key)
    caplog.set_level(logging.DEBUG)
    with pytest.raises(DeviceError) as refused:
        ssh.connect(pi)
    assert f"encrypted, and not in ssh-agent: {board.key}" in refused.value.message
    assert refused.value.hint == f"Unlock it first: ssh-add {board.key}"
    assert "geheim" not in caplog.text + refused.value.message


@pytest.mark.parametrize("public_half", [True, False])
def test_an_encrypted_key_that_the_agent_holds(sshd, device, tmp_path, monkeypatch, public_half):
    board = sshd()
    pi = device(board)
    with agent_with(tmp_path, monkeypatch, board.key):
        encrypt(board.key)
        if not public_half:
            board.key.with_name(board.key.name + ".pub").unlink()
        ssh.connect(pi).close()


def test_the_agents_keys_do_without_a_file(sshd, device, tmp_path, monkeypatch):
    board = sshd()
    with agent_with(tmp_path, monkeypatch, board.key):
        ssh.connect(device(board, identity="")).close()


def test_an_agent_that_does_not_answer(sshd, device, tmp_path, monkeypatch):
    monkeypatch.setattr(identity, "AGENT_SECONDS", 0.5)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "agent"))
        silent.listen()
        ssh.connect(device(sshd())).close()


def test_a_server_that_hangs_up_on_too_many_keys(sshd, device, tmp_path, monkeypatch):
    board = sshd(extra="MaxAuthTries 2\n")
    others = [make_key(tmp_path / f"key{n}") for n in range(3)]
    pi = device(board, identity="")
    with agent_with(tmp_path, monkeypatch, *others, board.key):
        with pytest.raises(DeviceError, match="then it hung up") as refused:
            ssh.connect(pi)
        assert "--identity" in refused.value.hint


def test_the_usual_file(sshd, device, home):
    board = sshd()
    board.authorise(make_key(home / ".ssh" / "id_ed25519"))
    ssh.connect(device(board, identity="")).close()


def test_no_key_at_all(sshd, device):
    pi = device(sshd(), identity="")
    with pytest.raises(DeviceError, match="accepted none of the keys: there are none"):
        ssh.connect(pi)


def test_a_server_that_takes_no_keys(sshd, device):
    extra = "Match all\nPubkeyAuthentication no\nPasswordAuthentication yes\n"
    board = sshd(extra=extra)
    with pytest.raises(DeviceError, match="takes no keys, only: password"):
        ssh.connect(device(board))


def test_nothing_secret_is_logged(sshd, device, caplog):
    board = sshd()
    caplog.set_level(logging.DEBUG)
    ssh.connect(device(board)).close()
    body = board.key.read_text().splitlines()[1:-1]
    assert caplog.records
    assert not any(line in caplog.text for line in body)
