"""The fences of conftest.py hold."""

import os
import socket
from pathlib import Path

import pytest


def test_home_is_a_temporary_folder(tmp_path_factory):
    root = tmp_path_factory.getbasetemp()
    assert Path.home().is_relative_to(root)
    assert Path(os.environ["XDG_DATA_HOME"]).is_relative_to(root)


@pytest.mark.parametrize("host", ["192.0.2.1", "example.invalid", "2001:db8::1"])
def test_other_machines_are_out_of_reach(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as sock, pytest.raises(pytest.fail.Exception):
        sock.connect((host, 80))


def test_loopback_is_open():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
