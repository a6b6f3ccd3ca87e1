"""A place where a team keeps its bundles, and a key that signs them; a registry that reads one."""

import pytest
from helpers.foreign import bundle, registry
from helpers.registry_samples import TARGET
from helpers.ssh_keys import make_key

from ansor_deploy.registry.exchange import push
from ansor_deploy.registry.store import Registry
from ansor_deploy.system.environment import cache_folder


@pytest.fixture
def place(tmp_path):
    return (tmp_path / "place").as_uri()


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "id"
    make_key(path)
    return path


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_folder("layers")


@pytest.fixture
def mine(tmp_path):
    """The user's registry, which knows the workload of size 64 and no record."""
    with Registry.open(tmp_path / "mine.db") as opened:
        opened.add_target(TARGET)
        opened.add_workloads(list(bundle(64).workloads.values()))
        yield opened


@pytest.fixture
def team(tmp_path):
    """A folder that a team pushes to."""
    folder = tmp_path / "team"
    push(registry(tmp_path / "theirs.db", 64, 128, ended=True), str(folder))
    return folder
