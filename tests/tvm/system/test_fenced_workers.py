"""What compiles and runs candidates writes to folders of its own, where the kernel has Landlock."""

from contextlib import closing
from pathlib import Path

import pytest
from helpers.built import HOST
from helpers.kernels import leaving
from helpers.local_board import LocalBoard, open_site

from ansor_deploy.codegen.kernels import candidate, objects
from ansor_deploy.codegen.kernels.signature import signature
from ansor_deploy.measure import builder
from ansor_deploy.measure.builder import Builder
from ansor_deploy.space.canonical_text import parse
from ansor_deploy.system import fence
from ansor_deploy.system.worker import Worker

needs_landlock = pytest.mark.skipif(fence.abi() < 4, reason="this kernel has no such Landlock")


def trespass(worker, own):
    beside = own.parent / "beside"
    beside.mkdir()
    (beside / "there").write_bytes(b"1")
    payload = {"folder": str(own), "beside": str(beside), "port": 1}
    ends = worker.call("helpers.trespass:attempts", payload, 60)
    assert {ends.pop("read")} == {""}
    return ends


@needs_landlock
def test_what_builds_candidates_writes_to_its_folder_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(builder, "Worker", Worker)  # those of tests share a wider fence
    own = tmp_path / "own"
    own.mkdir()
    with closing(Builder(HOST, own)) as one:
        ends = trespass(one._here.workers[0], own)
    assert ends.pop("write") == ""
    assert set(ends.values()) == {"EACCES"}


@needs_landlock
def test_what_compiles_kernels_writes_nowhere(tmp_path, monkeypatch):
    monkeypatch.setattr(objects, "_spare", [])
    (tmp_path / "own").mkdir()
    with objects._workers(1) as (worker,), closing(worker):
        assert set(trespass(worker, tmp_path / "own").values()) == {"EACCES"}


@needs_landlock
def test_a_candidate_on_a_board_leaves_nothing_outside_its_session(tmp_path):
    text, left = leaving(tmp_path / "left"), tmp_path / "left"
    payload = {"text": text, "how": "plain", "target": HOST.to_json()}
    built = candidate.build({**payload, "path": str(tmp_path / "candidate.so")})
    words = {**built, "signature": signature(parse(text)).to_json(), "seed": 0}
    board = LocalBoard(tmp_path / "board").connect()
    with closing(open_site("testboard", lambda: board, HOST.cores)) as site:
        words |= {"path": site.put(Path(built["path"])), "expected": site.scratch("expected")}
        site.call("ansor_deploy.measure.runner:reference", words, 20.0)
    for stream in board.streams:
        stream.close()
        stream.reap()
    assert not left.exists()
