"""What a target says about vectors is what LLVM makes of it."""

import pytest
import tvm
from tvm import te

from ansor_deploy.system.environment import shipped
from ansor_deploy.system.host import _X86_LEVELS
from ansor_deploy.target import list_targets, load_target

REGISTERS = {64: "%zmm", 32: "%ymm", 16: "%xmm"}
X86 = "x86_64-unknown-linux-gnu"
FOLDERS = [shipped("targets")]
CPU_TARGETS = [name for name in list_targets(FOLDERS) if load_target(name, FOLDERS).gpu is None]


def assembly(triple, cpu, features, lanes):
    """Of a multiply-add whose inner loop is vectorised by hand."""
    a, b = (te.placeholder((4096,), name=name) for name in "ab")
    func = te.create_prim_func([a, b, te.compute((4096,), lambda i: a[i] * b[i] + a[i], name="c")])
    schedule = tvm.s_tir.Schedule(func)
    (loop,) = schedule.get_loops(schedule.get_sblock("c"))
    schedule.vectorize(schedule.split(loop, [None, lanes])[1])
    config = {"kind": "llvm", "mtriple": triple, "mcpu": cpu, "mattr": list(features)}
    return tvm.compile(schedule.mod, tvm.target.Target(config)).mod.inspect_source("s")


@pytest.mark.parametrize(("cpu", "size"), [(level[0], level[2]) for level in _X86_LEVELS])
def test_a_level_of_x86_has_the_vectors_it_is_said_to_have(cpu, size):
    text = assembly(X86, cpu, [], size // 4)
    assert REGISTERS[size] in text
    assert not any(name in text for wider, name in REGISTERS.items() if wider > size)
    assert ("vfmadd" in text) == (size > 16)


@pytest.mark.parametrize("name", CPU_TARGETS)
def test_llvm_knows_the_shipped_target(name, capfd):
    target = load_target(name, [shipped("targets")])
    text = assembly(target.triple, target.cpu, target.features, target.vector_bytes // 4)
    assert (REGISTERS[target.vector_bytes] if "x86" in target.triple else ".4s") in text
    assert "not a recognized" not in capfd.readouterr().err
