"""A registry, and the server that shows it."""

import signal

import pytest
from helpers.browsing import add_all, browsing


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    path = tmp_path_factory.mktemp("browsed") / "registry.db"
    add_all(path)
    return path


@pytest.fixture(scope="module")
def address(filled):
    with browsing(filled) as (url, server):
        yield url
        server.send_signal(signal.SIGINT)
        assert "Traceback" not in server.stderr.read()
