"""What is no good costs little, and once: junk, and servers that send without end or slowly."""

import gzip
import os
import time
from contextlib import contextmanager

import pytest
from helpers.foreign import content, lines, parts
from helpers.web import Quiet, serving

from ansor_deploy.errors import RegistryError
from ansor_deploy.registry import bundle as bundles
from ansor_deploy.registry import http, remote
from ansor_deploy.registry import index as indexing
from ansor_deploy.registry import layers as layering
from ansor_deploy.registry.bundle import BundleRefused, read_bundle
from ansor_deploy.registry.exchange import pull
from ansor_deploy.registry.layer import Layer
from ansor_deploy.registry.layers import indexes
from ansor_deploy.registry.remote import name_of
from ansor_deploy.system.digest import canonical_json

pytestmark = pytest.mark.usefixtures("cache")

MANY = 50_000


def warned(where):
    said = []
    indexes([Layer(str(where))], said.append)
    return said


JUNK = {
    "no entries": lambda n: canonical_json({"junk": n}),
    "targets": lambda n: canonical_json({"target": {"n": n}}),
    "records": lambda n: canonical_json({"id": f"{n:064}", "record": {"n": n}}),
}


@pytest.mark.parametrize("name", JUNK)
def test_after_a_number_of_refusals_the_rest_is_not_looked_at(name, monkeypatch):
    looked_at = []
    attempt = bundles._Reading.attempt

    def counted(self, where, *rest):
        looked_at.append(where)
        return attempt(self, where, *rest)

    monkeypatch.setattr(bundles._Reading, "attempt", counted)
    junk = content(sorted(map(JUNK[name], range(MANY))))
    with pytest.raises(BundleRefused, match="and 80 more\n  what follows was not looked at"):
        read_bundle(junk, "junk")
    assert len(looked_at) == bundles.MOST_REFUSED


def record_like(n):
    """A line that is filed as a record's, and is none."""
    key = f'"key":{{"target":"{n:064x}","workload":"{n:064x}"}}'
    return f'{{"id":"{n:064x}","record":{{{key},"tvm":"1"}},"seconds":[1.0],"trace":""}}'


def test_junk_of_the_form_of_records_is_not_filed(tmp_path):
    team = tmp_path / "team"
    team.mkdir()
    junk = content(sorted([*map(record_like, range(3000)), *lines(parts(64))]))
    (team / name_of(junk)).write_bytes(junk)
    assert "line 1001: fields" in "".join(warned(team))


def test_lines_are_counted_before_anything_is_made_of_them(monkeypatch):
    monkeypatch.setattr(bundles, "MOST_LINES", 3)
    with pytest.raises(BundleRefused, match="it has more than 3 lines"):
        read_bundle(b"x\n" * 4, "junk")


def test_junk_is_read_once(tmp_path, monkeypatch):
    team = tmp_path / "team"
    team.mkdir()
    good, junk = content(lines(parts(64))), content(sorted(map(JUNK["targets"], range(200))))
    for one in (good, junk):
        (team / name_of(one)).write_bytes(one)
    (team / f"{'0' * 64}.jsonl").write_bytes(good)  # under a wrong name
    first = warned(team)
    assert len(first) == 2
    assert "and 80 more" in "".join(first)
    reads = []
    monkeypatch.setattr(indexing, "file_sha256", lambda path: reads.append(path) or "")
    assert warned(team) == first
    assert reads == []
    os.utime(team / name_of(junk), (1, 1))
    warned(team)
    assert [path.name for path in reads] == [name_of(junk)]


def test_of_many_files_of_junk_a_build_reads_some_and_names_fewer(tmp_path, monkeypatch):
    team = tmp_path / "team"
    team.mkdir()
    for n in range(12):
        (team / f"{n:064}.jsonl").write_bytes(content(lines(parts(64, 1e-3 * (n + 1)))))
    monkeypatch.setattr(indexing, "_JUNK_SECONDS", 1e-9)
    first, second = warned(team), warned(team)
    assert (len(first), len(second)) == (2, 3)
    assert "11 files more are read by later builds" in first[1]
    assert "10 files more are read by later builds" in second[2]
    monkeypatch.setattr(indexing, "_JUNK_SECONDS", 60)
    assert [one[:11] for one in warned(team)[-2:]] == [str(team)[:11], "and 4 more "]


def test_a_layer_of_one_file_is_read_once(tmp_path, monkeypatch):
    path = tmp_path / "records.jsonl"
    path.write_bytes(content(lines(parts(64))))
    assert warned(path) == []
    monkeypatch.setattr(indexing, "_take", lambda *words: pytest.fail("it is read again"))
    assert warned(path) == []


# Servers


class Hostile(Quiet):
    """Answers every request by `send`, and counts them."""

    send = staticmethod(lambda write: None)
    headers_sent = {"Content-Type": "text/html"}  # noqa: RUF012 - replaced whole
    asked: list[str] = []  # noqa: RUF012 - of all requests

    def do_GET(self):  # noqa: N802 - by the name of its request
        self.asked.append(self.path)
        self.send_response(200)
        for name, value in self.headers_sent.items():
            self.send_header(name, value)
        self.end_headers()
        with self._gone():
            self.send(self.wfile.write)

    do_HEAD = do_GET  # noqa: N815

    @contextmanager
    def _gone(self):
        try:
            yield
        except OSError:
            self.close_connection = True


@contextmanager
def sending(send, headers=None):
    sent = headers or {"Content-Type": "text/html"}
    made = type("Made", (Hostile,), {"send": staticmethod(send), "headers_sent": sent, "asked": []})
    with serving(made) as url:
        yield f"{url}/records", made


def without_end(write):
    while True:
        write(b"<a href='x'>x</a>" * 4096)


def a_bomb(write):
    write(gzip.compress(b"<a href='x'>x</a>" * (1 << 20)))


def slowly(write):
    while True:
        write(b"x")
        time.sleep(0.1)


def test_a_listing_without_end_is_not_read_on(tmp_path):
    with sending(without_end) as (url, _), pytest.raises(RegistryError, match="more than 16 MiB"):
        pull(tmp_path / "r.db", url)


def test_a_page_is_read_as_fast_as_it_is_long():
    """fsspec's own expression for links takes hours on this one."""
    good = name_of(content(lines(parts(64))))
    page = b"<a" + b" " * 200_000 + f"<a href='../{good}'>x</a>".encode()
    with sending(lambda write: write(page)) as (url, _):
        assert remote.BundleStore(url).names() == [good]


def test_a_bundle_that_comes_in_pieces_is_read_whole():
    def in_pieces(write):
        for _ in range(3):
            write(b"x" * 1000)
            time.sleep(0.1)

    with sending(in_pieces) as (url, _):
        assert remote.BundleStore(url).read("a.jsonl") == b"x" * 3000


def test_a_place_is_given_up_where_it_takes_too_long(monkeypatch):
    with sending(lambda write: write(b"<a href='a.jsonl'>x</a>")) as (url, _):
        store = remote.BundleStore(url)
        assert store.names() == ["a.jsonl"]
        monkeypatch.setattr(time, "monotonic", lambda: store._until + 1)
        with pytest.raises(RegistryError, match="after 60 minutes"):
            store.read("a.jsonl")


def test_a_bundle_that_never_comes_whole_is_given_up(monkeypatch):
    monkeypatch.setattr(remote, "SECONDS", 0.5)
    with sending(slowly) as (url, _), pytest.raises(RegistryError, match="after 0 minutes"):
        remote.BundleStore(url).read("a.jsonl")


def test_an_answer_that_never_comes_whole_is_given_up(monkeypatch):
    monkeypatch.setattr(http, "SECONDS", 0.5)
    with sending(slowly) as (url, server):
        for _ in range(2):
            with pytest.raises(RegistryError, match="not answer in time"):
                remote.BundleStore(url).names()
            server.send_response = lambda self, code: None
            server.end_headers = lambda self: None


def test_a_listing_that_is_cut_short_is_none(tmp_path):
    """Bundles that it does not name would be taken to be withdrawn."""
    headers = {"Content-Length": "1000"}
    said = pytest.raises(RegistryError, match="not sent all that it announced")
    with sending(lambda write: write(b"x"), headers) as (url, _), said:
        pull(tmp_path / "r.db", url)


def test_a_server_that_sends_elsewhere_is_followed_only_to_web_servers(tmp_path):
    class Elsewhere(Quiet):
        to = "file:///etc/passwd"

        def do_GET(self):  # noqa: N802 - by the name of its request
            self.send_response(302)
            self.send_header("Location", self.to)
            self.end_headers()

    with serving(Elsewhere) as url:
        with pytest.raises(RegistryError, match="it redirects to file:\n"):
            pull(tmp_path / "r.db", url)
        Elsewhere.to = "/again"
        with pytest.raises(RegistryError, match="it redirects more than 10 times"):
            pull(tmp_path / "r.db", url)


def test_nothing_that_is_packed_is_unpacked(tmp_path):
    headers = {"Content-Type": "text/html", "Content-Encoding": "gzip"}
    with sending(a_bomb, headers) as (url, _):
        assert remote.BundleStore(url).names() == []
        assert pull(tmp_path / "r.db", url).bundles == 0


def test_a_url_that_fails_is_not_asked_by_every_command(monkeypatch, cache):
    monkeypatch.setattr(layering, "PATIENCE", 2.0)
    with sending(slowly) as (url, server):
        (first,) = warned(url)
        assert "2 s" in first
        count = len(server.asked)
        began = time.monotonic()
        assert warned(url) == [first]
        assert time.monotonic() - began < 1
        assert len(server.asked) == count > 0
        (failed,) = cache.glob("*.failed")
        os.utime(failed, (1, 1))
        warned(url)
        assert len(server.asked) > count


def test_a_clock_that_was_ahead_hides_no_layer(tmp_path, cache):
    """A mark of the future says nothing of when the URL was asked."""
    listing = f"<a href='{name_of(content(lines(parts(64))))}'>x</a>".encode()
    with sending(lambda write: write(listing)) as (url, server):
        warned(url)
        (mark,) = [*cache.glob("*.asked"), *cache.glob("*.failed")]
        ahead = time.time() + 86_400 * 365
        os.utime(mark, (ahead, ahead))
        count = len(server.asked)
        warned(url)
        assert len(server.asked) > count
