"""When signed bundles were made: old ones that are there again, and what later ones withdraw."""

from dataclasses import replace

import pytest
from helpers.foreign import bundle, content, lines, parts, record, registry
from helpers.layers import ids, warnings_of

from ansor_deploy.registry.bundle import BundleRefused, read_bundle
from ansor_deploy.registry.exchange import export_file, pull, push, withdraw
from ansor_deploy.registry.layer import Layer
from ansor_deploy.registry.remote import SIGNATURE, WITHDRAWN, name_of
from ansor_deploy.registry.signing import load_signer, load_trusted
from ansor_deploy.registry.stamp import Stamp, stamp_of
from ansor_deploy.system.digest import canonical_json

pytestmark = pytest.mark.usefixtures("cache")

OLD, NEW = "2026-01-01T00:00:00+00:00", "2026-03-01T00:00:00+00:00"
SOON = "2026-03-01T12:00:00+00:00"


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "team"
    made.mkdir()
    return made


@pytest.fixture
def layer(folder, key):
    return Layer(str(folder), key.with_suffix(".pub"))


def put(path, size, made, key, withdrawn=()):
    """Write a signed bundle with a record of this size, as one that was made then: its digest."""
    data = replace(bundle(size), stamp=Stamp(made, tuple(withdrawn))).to_bytes()
    path = path / name_of(data) if path.is_dir() else path
    path.write_bytes(data)
    path.with_name(path.name + SIGNATURE).write_text(load_signer(key).sign(data))
    return name_of(data).removesuffix(".jsonl")


def pulled(tmp_path, folder, key):
    return pull(tmp_path / "new.db", str(folder), load_trusted(key.with_suffix(".pub")))


def stamps(folder):
    return sorted((stamp_of(path.read_bytes()) for path in folder.glob("*.jsonl")), key=repr)


def test_what_is_signed_says_when_and_what_is_not_has_one_text(folder, key, tmp_path):
    theirs = registry(tmp_path / "theirs.db", 64)
    push(theirs, str(folder), load_signer(key))
    push(registry(theirs, 128), str(folder), load_signer(key))
    first, second = stamps(folder)
    assert first.made < second.made  # of the same second, or by a clock that is behind
    export_file(theirs, tmp_path / "a.jsonl")
    assert stamp_of((tmp_path / "a.jsonl").read_bytes()) is None


def test_an_old_bundle_that_comes_after_newer_ones_is_not_taken(mine, layer, folder, key, tmp_path):
    put(folder, 128, NEW, key)
    assert (warnings_of(mine, layer), pulled(tmp_path, folder, key).bundles) == ([], 1)
    put(folder, 64, OLD, key)
    (warned,) = warnings_of(mine, layer)
    assert "an old copy is served" in warned
    assert "registry import" in warned
    assert ids(mine) == set()
    found = pulled(tmp_path, folder, key)
    assert (found.bundles, len(found.refused)) == (1, 1)


def test_what_comes_a_little_late_or_was_there_before_is_taken(mine, layer, folder, key, cache):
    put(folder, 64, OLD, key)
    put(folder, 128, SOON, key)
    assert warnings_of(mine, layer) == []
    put(folder, 256, NEW, key)
    assert warnings_of(mine, layer) == []
    for index in cache.glob("*.db"):  # it is made anew, from bundles that are old by now
        index.unlink()
    assert warnings_of(mine, layer) == []
    assert ids(mine) == {record(64).id}


def test_a_copy_that_is_not_whole_says_nothing_of_what_is_newest(mine, layer, folder, key, cache):
    put(folder, 128, OLD, key)
    warnings_of(mine, layer)
    (index,) = cache.glob("*.db")
    index.with_suffix(".failed").write_text("the fetch took too long")
    put(folder, 256, SOON, key)
    warnings_of(mine, layer)
    index.with_suffix(".failed").unlink()
    put(folder, 64, "2026-02-01T00:00:00+00:00", key)
    assert warnings_of(mine, layer) == []
    assert ids(mine) == {record(64).id}


def test_a_file_that_is_replaced_by_an_older_one_is_not_taken(mine, key, tmp_path):
    path = tmp_path / "all.jsonl"
    put(path, 128, NEW, key)
    layer = Layer(str(path), key.with_suffix(".pub"))
    assert warnings_of(mine, layer) == []
    put(path, 64, OLD, key)
    (warned,) = warnings_of(mine, layer)
    assert "an old copy is served" in warned
    assert ids(mine) == set()


def test_a_later_bundle_says_what_was_withdrawn(mine, layer, folder, key, tmp_path):
    """To one who never saw the words that did."""
    theirs = registry(tmp_path / "theirs.db", 64)
    push(theirs, str(folder), load_signer(key))
    (path,) = folder.glob("*.jsonl")
    withdraw(str(folder), path.stem, load_signer(key))
    push(registry(theirs, 128), str(folder), load_signer(key))
    (folder / f"{path.name}{WITHDRAWN}").unlink()
    warnings_of(mine, layer)
    assert ids(mine) == set()
    assert pulled(tmp_path, folder, key).withdrawn == [path.name]


def test_keys_that_nobody_trusts_withdraw_nothing(mine, folder, key):
    gone = put(folder, 64, OLD, key)
    put(folder, 128, NEW, key, [gone])
    assert warnings_of(mine, Layer(str(folder))) == []
    assert ids(mine) == {record(64).id}


WRONG = {
    "to come": ({"made": "2099-01-01T00:00:00+00:00", "withdrawn": []}, "is to come"),
    "no time": ({"made": "today", "withdrawn": []}, "is no time"),
    "no digest": ({"made": OLD, "withdrawn": ["../x"]}, "are no digests"),
    "another field": ({"made": OLD, "serial": 1, "withdrawn": []}, "are not"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_first_line_that_this_tool_does_not_write_is_refused(name):
    said, reason = WRONG[name]
    _, *rest = content(lines(parts(64))).splitlines(keepends=True)
    first = canonical_json({"ansor-deploy-bundle": 1, **said}).encode() + b"\n"
    with pytest.raises(BundleRefused, match=reason):
        read_bundle(first + b"".join(rest), "theirs")


def test_a_damaged_memory_is_none(mine, layer, folder, key, cache):
    put(folder, 64, OLD, key)
    warnings_of(mine, layer)
    (seen,) = cache.glob("*.seen")
    seen.write_bytes(b'{"newest":')
    assert warnings_of(mine, layer) == []
    assert ids(mine) == {record(64).id}
