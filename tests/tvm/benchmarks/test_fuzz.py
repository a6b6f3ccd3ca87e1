"""The fuzzer: the same tries for the same seed, and each of its surfaces tried for real."""

from __future__ import annotations

import random

import pytest
from click.testing import CliRunner
from helpers import built
from helpers.programs import PROGRAMS
from onnx import ModelProto

from ansor_deploy.registry.instructions import check_trace
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump
from ansor_deploy.system.untrusted import Refused
from benchmarks.fuzz import tries
from benchmarks.fuzz.messages import mutate
from benchmarks.fuzz.models import network, spoil
from benchmarks.fuzz.trace_edits import mutate as mutate_trace

ENDED = {"code": 0, "traceback": False, "seconds": 1.0, "megabytes": 100.0, "said": ""}


def test_an_edit_changes_the_message_and_the_same_seed_makes_the_same(tmp_path):
    whole = network("convolutional")
    made = []
    for _ in range(2):
        proto = ModelProto()
        proto.CopyFrom(whole)
        done = mutate(proto, 3, random.Random(5))
        made.append((done, proto.SerializeToString()))
    assert made[0] == made[1]
    assert made[0][1] != whole.SerializeToString()
    assert spoil(3, tmp_path / "a.onnx") == spoil(3, tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


@pytest.mark.parametrize(
    ("change", "end"),
    [
        ({}, "done"),
        ({"code": 3}, "refused"),
        ({"code": 6}, "differs"),
        ({"code": 70}, "exit 70"),
        ({"code": 3, "traceback": True}, "traceback"),
        ({"code": 3, "seconds": 21.0}, "hang"),
        ({"megabytes": 5000.0}, "memory"),
        ({"end": "refused"}, "refused"),
        ({"end": "traceback"}, "traceback"),
    ],
)
def test_how_a_command_ended(change, end, tmp_path, monkeypatch):
    monkeypatch.setattr(tries, "crowd", lambda: 1.0)
    assert tries.judged("models", "x", {**ENDED, **change}, tmp_path).end == end


@pytest.mark.slow
def test_a_few_tries_of_each_surface(monkeypatch, tmp_path):
    few = {name: (20, tried) for name, (_, tried) in tries.SURFACES.items()}
    monkeypatch.setattr(tries, "SURFACES", few)
    monkeypatch.setattr(tries, "ROUNDS", 1)
    words = ["--seed", "3", "--findings", str(tmp_path / "findings")]
    ended = CliRunner().invoke(tries.command, words)
    assert ended.exit_code == 0, ended.output
    table = [line.split() for line in ended.stdout.splitlines()[-len(few) :]]
    assert [words[0] for words in table] == list(few)
    assert all(len(words) > 1 for words in table)


def test_a_changed_trace_can_be_read_and_the_same_seed_makes_the_same():
    begin = dump(default_schedule(PROGRAMS["matmul"](), built.HOST).trace)
    made = [mutate_trace(begin, 2, random.Random(seed)) for seed in (*range(40), *range(40))]
    assert made[:40] == made[40:]
    assert sum(trace != begin for trace, _ in made[:40]) > 20
    fit = [trace for trace, _ in made[:40] if not _refusal(trace)]
    assert len(fit) > 10


def _refusal(trace: str) -> str:
    try:
        check_trace(trace, "llvm")
    except Refused as refused:
        return str(refused)
    return ""
