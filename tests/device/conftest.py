"""A user of their own for each test, and the servers to reach."""

import pytest
from sshd import sshd

__all__ = ["sshd"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A fresh home with an empty ~/.ssh, no devices and no ssh-agent."""
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return folder
