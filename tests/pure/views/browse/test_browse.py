"""The registry in a browser: the real command, asked over HTTP."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from html.parser import HTMLParser
from urllib.parse import quote, urljoin, urlsplit

import pytest
from helpers import cli_inside
from helpers.browsing import MODELS, TAG, browsing
from helpers.cli_process import everything, refused
from helpers.registry_samples import SPEED, TARGET, key

from ansor_deploy.registry.store import Registry
from ansor_deploy.views.browse.guard import shortened
from ansor_deploy.views.browse.pages import _gain

HASH = re.compile(r"\b[0-9a-f]{64}\b")
TASK = f"/tasks/{key(0).workload[:12]}"
TITLES = {
    "/": "Overview of the registry",
    "/operators": "Where the time goes, by operator",
    "/best": "The best record of each task",
    "/curves": "Tuning curves",
    "/trends": "Trends, by week",
    TASK: "conv2d",
    f"/models/{MODELS[0][:12]}": "resnet.onnx",
    f"/models/{MODELS[1][:12]}": TAG,
    "/registry": "registry",
    "/registry/standings": "registry: standings: 101 rows",
}


ENDLESS = quote(
    "with recursive t(n) as (select 1 union all select n+1 from t) select count(*) from t"
)


class Page(HTMLParser):
    """What a page shows and where it leads."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.shown, self.within = [], [], [], []
        self.title = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.within.append(tag)
        self.links += [value for name, value in attrs if (tag, name) == ("a", "href")]

    def handle_endtag(self, tag):
        while self.within and self.within.pop() != tag:
            pass

    def handle_data(self, data):
        self.shown.append(data if "textarea" not in self.within else "")
        if self.within[-1:] == ["title"] and "svg" not in self.within:
            self.title += data


def get(address, place="", **headers):
    """Status, type and text."""
    request = urllib.request.Request(urljoin(address, place), headers=headers)  # noqa: S310 - http
    try:
        with urllib.request.urlopen(request, timeout=60) as found:  # noqa: S310
            return found.status, found.headers, found.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def page(address, place):
    status, headers, text = get(address, place)
    assert status == 200, text
    assert headers["content-type"].startswith("text/html")
    return Page(text)


def kind(place):
    """The same for pages of one kind, such as those of all tasks."""
    parts = urlsplit(place)
    return re.sub(r"[0-9a-f]{12,}|\d+", "#", parts.path), re.sub(r"=[^&]*", "", parts.query)


def crawl(address):
    """One page of each kind that can be reached, by its place."""
    found, ahead, seen = {}, ["/", f"/registry?sql=select+'{'0f' * 32}'+as+hash"], set()
    while ahead:
        place = ahead.pop()
        if kind(place) in seen or not urljoin(address, place).startswith(address):
            continue
        seen.add(kind(place))
        status, headers, text = get(address, place)
        assert status == 200, place
        if headers["content-type"].startswith("text/html"):
            found[place] = (Page(text), headers, text)
            if not urlsplit(place).query:  # further questions about a table have no end
                ahead += [urljoin(place, link).partition("#")[0] for link in found[place][0].links]
    return found


@pytest.fixture(scope="module")
def pages(address):
    return crawl(address)


@pytest.mark.parametrize(("place", "title"), TITLES.items())
def test_pages_have_titles(address, place, title):
    assert title in page(address, place).title


def test_every_table_is_reached(pages):
    paths = {urlsplit(place).path for place in pages}
    tables = ("tasks", "best_records", "standings", "trials", "models", "builds", "targets")
    assert {f"/registry/{name}" for name in (*tables, "best", "missing", "failures")} <= paths
    assert len(pages) > 50


def test_no_hash_is_shown_at_its_full_width(pages):
    for place, (found, _, _) in pages.items():
        assert not HASH.search("\n".join(found.shown)), place


def test_keys_lead_to_tasks_and_models(address):
    for table in ("best_records", "trials", "searches", "model_tasks"):
        assert any(link.startswith("/tasks/") for link in page(address, f"/registry/{table}").links)
    assert f"/models/{MODELS[0][:12]}" in page(address, "/registry/builds").links


def test_models_and_targets_are_told_apart(address):
    model, target = f"resnet.onnx {MODELS[0][:6]}", f"board {TARGET.fingerprint[:6]}"
    for place in ("/", TASK, "/registry/shared"):
        assert model in "".join(page(address, place).shown)
    for place in ("/", "/operators", "/best", "/curves", TASK, f"/models/{MODELS[0][:12]}"):
        assert target in "".join(page(address, place).shown)


def test_a_week_says_what_was_saved(address):
    # Two models have five tasks, each of which was tried five times, or more, as one search says.
    assert "2026-01-26" in "".join(page(address, "/trends").shown)
    assert 'style="width:100.0%"' in get(address, "/trends")[2]


def test_nothing_is_loaded_and_nothing_runs(address, pages):
    for place, (found, headers, text) in pages.items():
        assert "default-src 'none'" in headers["content-security-policy"]
        names = {name for name, _ in found.tags}
        assert not names & {"script", "link", "img", "iframe", "object"}, place
        assert not re.search(r"@import|url\(|\bon\w+=", re.sub(r">[^<]*<", "><", text)), place
        for link in found.links:
            assert urljoin(address, link).startswith(address), link


def test_names_are_never_tags(pages):
    assert sum(TAG in "".join(found.shown) for found, _, _ in pages.values()) > 5
    assert not any(TAG in text for _, _, text in pages.values())


def test_a_gain_is_what_a_race_found():
    assert _gain({"speed": SPEED}) == "2.40x faster"
    assert _gain({"speed": {**SPEED, "verdict": "cannot say"}}) == "cannot say"
    assert _gain({"speed": {**SPEED, "verdict": "same"}}) == "the same"
    others = ({}, {"speed": None}, {"speed": {**SPEED, "verdict": None}}, {"speed": {"ratio": 0.5}})
    assert {_gain(one) for one in others} == {""}


def test_questions_are_answered(address):
    shown = "".join(page(address, "/").shown)
    assert "resnet.onnx" in shown
    assert "2.40x faster" in shown  # untuned 30 ms, tuned 12.5 ms
    assert "<svg" in get(address, TASK)[2]
    assert "<svg" in get(address, "/curves")[2]
    assert "conv2d" in "".join(page(address, "/operators").shown)
    chosen = page(address, f"/best?op=conv2d&target={TARGET.fingerprint[:12]}")
    assert ("option", {"selected": None}) in chosen.tags
    assert ("option", {"value": TARGET.fingerprint[:12], "selected": None}) in chosen.tags
    assert "No record matches" in get(address, "/best?op=softmax")[2]
    assert "Nothing was tuned" in get(address, "/curves?target=other")[2]


def test_tables_answer_as_json_with_whole_keys(address):
    rows = json.loads(get(address, "/registry/best.json?op=conv2d&_shape=array")[2])
    assert len(rows) == 20
    assert HASH.fullmatch(rows[0]["workload"])


@pytest.mark.parametrize("place", ["/nosuch", "/tasks/0000", "/models/0000", "/registry/nosuch"])
def test_what_is_not_there_is_said(address, place):
    status, _, text = get(address, place)
    assert status == 404
    assert "Not found" in text
    assert "Traceback" not in text


def test_a_wrong_query_is_said(address):
    status, _, text = get(address, "/registry?sql=select+x+from+y")
    assert status == 400
    assert "no such table: y" in text


@pytest.mark.parametrize("where", ["nosuch=1", "1=1;drop+table+models", "("])
def test_a_wrong_condition_does_not_blame_the_registry(address, where):
    status, _, text = get(address, f"/registry/tasks?_where={where}")
    assert status == 400
    assert "--repair" not in text


def test_a_query_without_end_is_ended(address):
    status, _, text = get(address, f"/registry?_timelimit=50&sql={ENDLESS}")
    assert status == 400
    assert "the query took longer than" in text


@pytest.mark.skipif(sys.version_info < (3, 11), reason="SQLite's limits cannot be set")
def test_a_value_without_end_is_not_made(address):
    _, _, text = get(address, "/registry?sql=select+hex(zeroblob(20000000))")
    assert "too big" in text


@pytest.mark.parametrize("sql", ["delete from models", "attach 'x.db' as x", "vacuum"])
def test_queries_only_read(address, sql):
    status, _, _ = get(address, f"/registry?sql={sql.replace(' ', '+')}")
    assert status == 400


def test_other_sites_cannot_ask(address):
    assert get(address, "/", Host="evil.example")[0] == 400
    assert get(address, "/", Host="localhost:1")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_is_written(address, method):
    place = urljoin(address, "/registry/records")
    request = urllib.request.Request(place, b"{}", method=method)  # noqa: S310 - http
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(request, timeout=60)  # noqa: S310


def test_the_file_stays_as_it_is_and_ctrl_c_is_the_end(filled, tmp_path):
    path = tmp_path / "odd ? name # %.db"
    path.write_bytes(filled.read_bytes())
    before = everything(tmp_path)
    with browsing(path) as (address, server):
        for place in TITLES:
            assert get(address, place)[0] == 200
        server.send_signal(signal.SIGINT)
        said = server.stderr.read()
    assert server.returncode == 0
    assert said == f"showing {path}, read only; Ctrl-C ends it\n"
    assert everything(tmp_path) == before


def test_ctrl_c_in_the_middle_of_a_query(filled):
    with browsing(filled) as (address, server):
        parts = urlsplit(address)
        with socket.create_connection((parts.hostname, parts.port)) as asking:
            line = f"GET /registry?_timelimit=3000&sql={ENDLESS} HTTP/1.1"
            asking.sendall(f"{line}\r\nHost: localhost\r\n\r\n".encode())
            assert get(address, "/")[0] == 200  # and so the query is under way
            server.send_signal(signal.SIGINT)
            said = server.stderr.read()
    assert server.returncode == 0
    assert said.count("\n") == 1
    assert "showing" in said


def test_a_registry_that_grows(filled, tmp_path):
    path = tmp_path / "registry.db"
    path.write_bytes(filled.read_bytes())
    with Registry.open(path) as registry, browsing(path) as (address, _):
        with registry.writing():  # as a tune that is about to commit
            assert get(address, "/")[0] == 200
            assert get(address, "/registry/standings")[0] == 200
        registry.add_model("ef" * 32, "later.onnx", [(key(3), 1)])
        assert "later.onnx" in get(address, "/")[2]
        registry.add_tuning(TARGET.fingerprint, "ansor", 1, 1.0, "2026-02-01")


def test_a_damaged_page_is_said_and_the_others_are_shown(filled, tmp_path):
    path = tmp_path / "registry.db"
    whole = filled.read_bytes()
    with browsing(path_of(path, whole)) as (address, server):
        path.write_bytes(whole[: len(whole) // 4] + bytes(len(whole) - len(whole) // 4))
        found = {place: get(address, place) for place in ("/", "/registry/standings")}
        path.write_bytes(whole)
        assert get(address, "/")[0] == 200
        server.send_signal(signal.SIGINT)
        assert "Traceback" not in server.stderr.read()
    for status, _, text in found.values():
        assert status == 500
        assert "is damaged" in text
        assert "registry verify --repair" in text


def path_of(path, content):
    path.write_bytes(content)
    return path


def test_what_is_no_registry_is_refused(tmp_path):
    (tmp_path / "bad.db").write_bytes(b"no database " * 1000)
    browse = ("registry", "browse", "--registry")
    missing = cli_inside.program(tmp_path, *browse, "nosuch.db")
    refused(missing, 2, "there is no registry", "--registry FILE")
    refused(cli_inside.program(tmp_path, *browse, "bad.db"), 8, "is damaged: it is not a registry")


def test_a_port_that_is_in_use(filled, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = ("registry", "browse", "--registry", filled, "--port", port)
        refused(cli_inside.program(tmp_path, *words), 1, f"port {port} of 127.0.0.1 is in use")


def test_without_datasette(filled):
    code = (
        "import sys; sys.modules['datasette'] = None; from ansor_deploy.cli import main; "
        f"main(['registry', 'browse', '--registry', {str(filled)!r}])"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    refused(result, 1, "not installed", "pip install 'ansor-deploy[browse]'")


def test_the_address_is_opened(filled, tmp_path):
    opened = tmp_path / "opened"
    os.mkfifo(opened)
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    with browsing(filled, opens=browser) as (address, _):
        assert opened.read_text() == f"{address}\n"


def test_a_termination_is_no_ctrl_c(filled):
    with browsing(filled) as (_, server):
        server.terminate()
        server.wait()
    assert server.returncode == 143


def test_what_somebody_writes_keeps_its_hashes():
    digest = b"0f" * 32
    text = b'<a href="/%b">%b</a><textarea>%b</textarea>' % (digest, digest, digest)
    assert shortened(text) == b'<a href="/%b">0f0f0f</a><textarea>%b</textarea>' % (digest, digest)


def test_help_says_how(tmp_path):
    result = cli_inside.program(tmp_path, "registry", "browse", "--help")
    assert "ansor-deploy registry browse --registry team.db --port 0 --no-open" in result.stdout
