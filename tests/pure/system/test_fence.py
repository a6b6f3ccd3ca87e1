"""The fence around a process that runs candidates."""

import socket
from contextlib import closing

import pytest

from ansor_deploy.devices import site
from ansor_deploy.devices.site import LocalSite
from ansor_deploy.doctor import host
from ansor_deploy.system import fence
from ansor_deploy.system.worker import Worker


@pytest.fixture
def tried(tmp_path):
    """How a worker's attempts end, by the variables that it has."""
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "there").write_bytes(b"1")
    (tmp_path / "own").mkdir()

    def ends(**env):
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            closing(Worker("helpers.trespass", env)) as worker,
        ):
            payload = {"folder": str(tmp_path / "own"), "beside": str(beside)}
            payload["port"] = server.getsockname()[1]
            return worker.call("helpers.trespass:attempts", payload, 60)

    return ends


@pytest.mark.skipif(fence.abi() < 4, reason="this kernel cannot refuse connections")
def test_a_worker_writes_to_its_folder_alone_and_connects_to_nobody(tried, tmp_path):
    ends = tried(**{fence.VARIABLE: str(tmp_path / "own")})
    assert (ends.pop("write"), ends.pop("read")) == ("", "")
    assert set(ends.values()) == {"EACCES"}


def test_other_workers_have_their_rights(tried):
    assert set(tried().values()) == {""}


def test_where_the_kernel_has_none_nothing_is_fenced(monkeypatch):
    monkeypatch.setattr(fence, "abi", lambda: 0)
    monkeypatch.setattr(host, "abi", lambda: 0)
    assert fence.close_around("/nowhere") is False
    assert "not fenced" in host.check_fence().found


def test_run_workers_are_fenced(monkeypatch):
    monkeypatch.setattr(site, "Worker", Worker)  # those of tests share a wider fence
    with closing(LocalSite(1)) as one:
        assert one._worker._env[fence.VARIABLE] == str(one._scratch.path)
