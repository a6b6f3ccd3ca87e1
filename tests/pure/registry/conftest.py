"""A place where a team keeps its bundles, and a key that signs them."""

import pytest
from helpers.ssh_keys import make_key


@pytest.fixture
def place(tmp_path):
    return (tmp_path / "place").as_uri()


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "id"
    make_key(path)
    return path
