"""Checked programs end where they leave a buffer, and else give what they gave before."""

from dataclasses import replace

import pytest
from helpers import built
from tvm.script import tirx as T  # noqa: N812 - TVM's own name for it

from ansor_deploy._tvm import tvm
from ansor_deploy.model.relax.extract import task_of
from benchmarks.fuzz.rules import attempt
from benchmarks.fuzz.traces import court_of, tried

LOOP = "[[],[]]"
VECTOR = (
    '[[["GetSBlock",[],["root","main"],["b0"]],["GetChildBlocks",["b0"],[],["b1"]],'
    '["GetLoops",["b1"],[],["l2"]],["Vectorize",["l2"],[],[]]],[]]'
)


def shifted(read: int, write: int) -> tvm.IRModule:
    """Eight elements, copied from so many places behind to so many behind."""

    @T.prim_func(s_tir=True, private=True)
    def main(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        T.func_attr({"tirx.noalias": True})
        for i in range(8):
            with T.sblock("y"):
                at = T.axis.spatial(8, i)
                y[at + write] = x[at + read]

    return tvm.IRModule({"main": main})


@pytest.mark.parametrize(
    ("read", "write", "trace", "said"),
    [
        (0, 0, VECTOR, ""),
        (1, 0, VECTOR, "SIGABRT"),
        (-1, 0, LOOP, "SIGABRT"),
        (0, 1, VECTOR, "SIG"),
    ],
)
def test_what_leaves_a_buffer_ends(read, write, trace, said, tmp_path):
    inside, other = (
        task_of(shifted(*by)["main"], "x", built.HOST) for by in ((0, 0), (read, write))
    )
    court = court_of(inside, built.HOST, tmp_path, "benchmarks.fuzz.bounds")
    found = tried(replace(court, task=other), "", trace, tmp_path)
    assert found["end"] == ("wrong" if said else "done")
    assert said in found["said"]


def test_a_few_programs_of_a_rule_stay_inside(tmp_path):
    found = attempt({"seed": 10, "target": "host", "folder": str(tmp_path)})
    assert {one["end"] for one in found["traces"]} == {"done"}
