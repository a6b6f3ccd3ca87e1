"""The registry browses well in Datasette; without it, its metadata is true all the same."""

import importlib.util
import json
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.registry_samples import TARGET, TVM, fill, key, record

from ansor_deploy.project import shipped
from ansor_deploy.registry.store import Registry

METADATA = shipped("registry") / "datasette.yml"
needs_datasette = pytest.mark.skipif(
    importlib.util.find_spec("datasette") is None, reason="needs datasette (pip install datasette)"
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    place = tmp_path_factory.mktemp("browsed") / "registry.db"
    with Registry.open(place) as registry:
        fill(registry, 100)
        loser = registry.top(key(0), TVM, 1)[0].id
        registry.add_contest(record(key(0), 2e-3), [loser], "2026-01-31T12:00:00Z")
        for digest, name in (("ab" * 32, "resnet.onnx"), ("cd" * 32, "mobilenet.onnx")):
            registry.add_model(digest, name, [(key(n), 1) for n in range(5)])
        registry.add_tuning(TARGET.fingerprint, "ansor", 10, 20.0, "2026-01-31")
    return place


@pytest.fixture(scope="module")
def described():
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(METADATA.read_text())["databases"]["registry"]


def test_the_command_names_the_metadata(path):
    found = answer(path.parent, "registry", "datasette", "--registry", path)
    assert found["command"] == ["datasette", str(path), "--metadata", str(METADATA)]
    said = program(path.parent, "registry", "datasette", "--registry", path).stdout
    assert said == f"datasette {path} --metadata {METADATA}\n"


def test_another_name_needs_another_file(tmp_path):
    words = ("registry", "datasette", "--registry", "team.db")
    refused(program(tmp_path, *words), 2, "called registry.db, not team.db", "--output team.yml")
    assert answer(tmp_path, *words, "-o", "team.yml")["metadata"] == "team.yml"
    ours, theirs = METADATA.read_text(), (tmp_path / "team.yml").read_text()
    assert theirs == ours.replace("\n  registry:\n", '\n  "team":\n') != ours


def test_every_table_and_column_is_described(path, described):
    with closing(sqlite3.connect(path)) as raw:
        names = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        tables = {row[0] for row in raw.execute(names)} - {"sqlite_sequence"}
        assert set(described["tables"]) == tables
        for name, said in described["tables"].items():
            columns = raw.execute("SELECT name, type FROM pragma_table_info(?)", (name,))
            types = dict(columns.fetchall())
            if said.get("hidden"):
                continue
            assert "BLOB" not in types.values(), name
            assert set(said["columns"]) == set(types), name
            used = {*said.get("sortable_columns", []), *said.get("facets", [])}
            used |= {said[word] for word in ("sort_desc", "label_column") if word in said}
            assert used <= set(types), name


def test_every_query_runs(path, described):
    given = {"op": "conv", "key": key(0).workload[:8]}
    with closing(sqlite3.connect(path)) as raw:
        found = {
            n: raw.execute(q["sql"], given).fetchall() for n, q in described["queries"].items()
        }
    assert {name: len(rows) for name, rows in found.items()} == {
        "best": 20,
        "missing": 0,
        "failures": 0,
        "history": 6,
        "shared": 5,
    }


def get(path, url):
    command = [sys.executable, "-m", "datasette", path, "--metadata", METADATA, "--get", url]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return result.stdout


@needs_datasette
def test_datasette_shows_what_people_look_at(path):
    page = get(path, "/registry")
    assert "The best of each task" in page
    assert "6 hidden tables" in page
    for name in ("tasks", "best_records", "standings", "trials"):
        html = get(path, f"/registry/{name}")
        assert "Binary" not in html
        assert f"/registry/{name}" in html
    assert "SHA-256 of the record" in get(path, "/registry/standings")


@needs_datasette
def test_datasette_answers_the_queries(path):
    rows = json.loads(get(path, "/registry/best.json?op=conv2d&_shape=array"))
    assert len(rows) == 20
    assert {row["target"] for row in rows} == {"board"}
    assert len(json.loads(get(path, "/registry/shared.json?_shape=array"))) == 5
    facets = json.loads(get(path, "/registry/standings.json?_facet=lost"))["facet_results"]
    assert "lost" in json.dumps(facets)
