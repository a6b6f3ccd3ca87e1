"""Records to ship: which win, and the bundle of them."""

from dataclasses import replace
from importlib.metadata import version

import pytest
from helpers import foreign
from helpers.ssh_keys import make_key

from ansor_deploy.project import Project
from ansor_deploy.registry.bundle import Bundle, read_bundle
from ansor_deploy.registry.exchange import read_signed
from ansor_deploy.registry.layer import layers_of
from ansor_deploy.registry.layers import bring_in, indexes
from ansor_deploy.registry.signing import load_signer, load_trusted
from ansor_deploy.registry.store import Registry
from benchmarks.registry import base

TVM = version("apache-tvm")
FOUND = {size: foreign.record(size) for size in (1, 2, 3, 4)}


def of(record, search, seconds, **more):
    where = replace(record.provenance, search=search, tvm=TVM)
    return replace(record, provenance=where, seconds=(seconds,), claimed=False, **more)


@pytest.fixture
def tuned(tmp_path):
    """Of four tasks, one where the search has won, and three where nothing may be better."""
    path = foreign.registry(tmp_path / "tuned.db", *FOUND)
    won, lost, claimed, alone = FOUND.values()
    with Registry.open(path) as registry:
        registry.rows("DELETE FROM records")
        records = [of(won, "default", 2e-3, trace="[[],[]]"), of(won, "ansor", 1e-3)]
        records += [of(lost, "default", 1e-3), of(lost, "ansor", 2e-3, trace="[[],[]]")]
        records += [replace(of(claimed, "ansor", 1e-3), claimed=True), of(alone, "ansor", 1e-3)]
        registry.add_batch([], records)
    return path


def test_only_what_has_beaten_the_default_schedule_is_kept(tuned):
    found = base.winners(tuned)
    assert [one.key for one in found.records.values()] == [FOUND[1].key]
    assert [one.provenance.search for one in found.records.values()] == ["ansor"]
    assert set(found.workloads) == {FOUND[1].key.workload}


def test_what_has_won_has_to_win_again_as_what_others_claim(tuned, tmp_path):
    base.take_in(tmp_path / "again.db", base.unproved(base.winners(tuned)))
    with Registry.open(tmp_path / "again.db") as again:
        (record,) = again.top(FOUND[1].key, TVM, 9)
    assert record.claimed
    assert not base.winners(tmp_path / "again.db").records


def test_the_bundle_is_the_lowest_layer_of_builds(tuned, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "seed").mkdir()
    (tmp_path / "seed/old.jsonl").touch()
    found = base.winners(tuned)
    said = base.write(base.united([found, found], "shipped"), tmp_path / "seed")
    assert said.startswith("1 records, ")
    with Registry.open(tmp_path / "mine.db") as mine:
        mine.add_target(foreign.TARGET)
        mine.add_workloads(found.workloads.values())
        layers = indexes(layers_of(Project(), tmp_path / "seed"), pytest.fail)
        bring_in(layers, [FOUND[1].key], mine, pytest.fail)
        (record,) = mine.top(FOUND[1].key, TVM, 9)
    assert (record.provenance.device, record.claimed) == ("shipped", True)


def test_the_bundle_is_signed_and_replaces_the_one_before(tuned, tmp_path):
    make_key(tmp_path / "id")
    found, folder = base.united([base.winners(tuned)], "shipped"), tmp_path / "seed"
    for _ in range(2):
        base.write(found, folder, load_signer(tmp_path / "id"))
        (bundle,) = folder.glob("*.jsonl")
        text, _ = read_signed(bundle, load_trusted(tmp_path / "id.pub"))
        assert read_bundle(text, "base").records == found.records
    assert len(list(folder.iterdir())) == 2


def test_nothing_is_written_where_nothing_has_won(tmp_path):
    with pytest.raises(SystemExit, match="0 records in"):
        base.write(Bundle(), tmp_path / "seed")
    assert not (tmp_path / "seed").exists()
