"""Web servers that records are pulled from, and pushed to where they take PUT."""

from functools import partial
from pathlib import Path

import pytest
from helpers.foreign import registry
from helpers.web import Quiet, serving

from ansor_deploy.errors import RegistryError
from ansor_deploy.registry.exchange import pull, push
from ansor_deploy.registry.signing import load_signer, load_trusted
from ansor_deploy.registry.transfer import Taken

said: set[str | None] = set()  # who the server was told that asks


class Writable(Quiet):
    def do_PUT(self):  # noqa: N802 - by the name of its request
        said.add(self.headers["Authorization"])
        content = self.rfile.read(int(self.headers["Content-Length"]))
        Path(self.translate_path(self.path)).write_bytes(content)
        self.send_response(201)
        self.end_headers()


@pytest.fixture(params=[Quiet])
def server(tmp_path, request):
    handler = partial(request.param, directory=tmp_path / "place")
    with serving(handler) as url:
        yield url


def test_a_web_server_can_be_pulled_from(tmp_path, place, server, key):
    mine = registry(tmp_path / "mine.db", 1, 2)
    push(mine, place, load_signer(key))
    found = pull(tmp_path / "new.db", server, load_trusted(key.with_suffix(".pub")))
    assert (found.taken, found.refused) == (Taken(2, 0), [])
    push(registry(tmp_path / "more.db", 3), place)
    found = pull(tmp_path / "new.db", server, load_trusted(key.with_suffix(".pub")))
    assert "not signed" in found.refused[0].message
    with pytest.raises(RegistryError, match=r"127\.0\.0\.1"):
        push(registry(tmp_path / "other.db", 4), server)


@pytest.mark.parametrize("server", [Writable], indirect=True)
def test_a_web_server_that_takes_put_can_be_pushed_to(tmp_path, server, key):
    (tmp_path / "place").mkdir()
    signer, trusted = load_signer(key), load_trusted(key.with_suffix(".pub"))
    assert push(registry(tmp_path / "mine.db", 1, 2), server, signer).records == 2
    assert push(registry(tmp_path / "more.db", 2, 3), server, signer).records == 1
    assert pull(tmp_path / "new.db", server, trusted).taken == Taken(3, 0)
    named = server.replace("//", "//me:p%40ss@")
    assert push(registry(tmp_path / "other.db", 4), named).records == 1
    assert said == {None, "Basic bWU6cEBzcw=="}
