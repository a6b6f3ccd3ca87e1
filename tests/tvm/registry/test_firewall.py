"""The firewall lets in what the rules and MetaSchedule really write, and keeps out real code."""

import itertools
import json
import random
from dataclasses import replace

import pytest
import tvm
from helpers import built
from helpers.foreign import parts
from helpers.programs import PROGRAMS, matmul
from tvm_ffi import structural_equal

from ansor_deploy.codegen.model import schedule
from ansor_deploy.errors import RegistryError
from ansor_deploy.model.relax.extract import task_of
from ansor_deploy.registry.bundle import read_bundle
from ansor_deploy.registry.firewall import target_fields
from ansor_deploy.registry.instructions import check_trace
from ansor_deploy.registry.record import Provenance, Record
from ansor_deploy.registry.schema import WORKLOADS
from ansor_deploy.space.code_size import MOST_OPERATIONS, code_size
from ansor_deploy.space.default_schedule import default_program
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.question import Guess, Random
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.trace import dump, replay
from ansor_deploy.system.digest import canonical_json
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.untrusted import Refused
from ansor_deploy.target import load_target
from ansor_deploy.tune.search import metaschedule

TARGETS = {n: load_target(n, [shipped("targets")]) for n in ("intel-cpu-avx512", "cortex-a53")}
V100 = load_target("v100", [shipped("targets")])
SEARCHED = ["conv 13x13", "depthwise", "matmul", "int8 product", "softmax", "mean of all"]


def by_rules(mod, target, fresh):
    """Traces of every sketch: its default program, and some at random."""
    for sketch in derive(mod, target, shipped_rules(target.kind)).sketches:
        for seed in [None, *range(fresh)]:
            chooser = Guess() if seed is None else Random(random.Random(seed))
            try:
                yield dump(sketch.program(chooser).sch.trace)
            except (ValueError, RuntimeError):  # decisions that do not fit
                continue


def by_metaschedule(task, target, fresh):
    """Traces of every design space as its evolution samples them, postprocessors applied."""
    context = metaschedule._context(task, target, 0)
    generator = context.space_generator
    for space, seed in itertools.product(generator.generate_design_space(task.mod), range(fresh)):
        sch = tvm.s_tir.Schedule(task.mod, seed=seed + 1, debug_mask="none")
        space.trace.apply_to_schedule(sch, remove_postproc=True)
        sch.enter_postproc()
        if all(step.apply(sch) for step in generator.postprocs):
            yield dump(sch.trace)


def test_every_program_of_the_rules_comes_in():
    """Defaults of all for both kinds; random decisions, which take longest, for one kind each."""
    count = 0
    for at, make in enumerate(PROGRAMS.values()):
        for kind, target in enumerate((TARGETS["cortex-a53"], V100)):
            for trace in by_rules(make(), target, fresh=at % 2 == kind):
                check_trace(trace, target.kind)
                count += 1
    assert count > 300


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_what_metaschedule_writes_comes_in(target):
    count = 0
    for name in SEARCHED:
        task = task_of(PROGRAMS[name]()["main"], name, target)
        for trace in by_metaschedule(task, target, 4):
            check_trace(trace, target.kind)
            count += 1
    assert count > 50


def test_whole_records_of_real_tasks_come_in():
    """Workload, target and trace of every program, through the text of a bundle."""
    target = TARGETS["cortex-a53"]
    lines = {canonical_json({"target": target_fields(target.to_json())})}
    for name, make in PROGRAMS.items():
        task = task_of(make()["main"], name.replace(" ", "_"), target)
        made, (proof, origin) = default_program(task.mod, target), _vouched()
        where = replace(origin, derived_by=made.sketch.rules)
        record = Record(task.key, dump(made.sch.trace), (1e-3,), proof, where)
        lines.add(canonical_json({"id": record.id, "record": record.to_json()}))
        lines.add(canonical_json({"workload": WORKLOADS.sent_of(task.workload)}))
    text = "\n".join(['{"ansor-deploy-bundle":1}', *sorted(lines), ""]).encode()
    found = read_bundle(text, "real")
    assert len(found.records) == len(PROGRAMS)
    assert found.to_bytes() == text


def _vouched():
    one = parts(1)["record"]
    return one["proof"], Provenance(**one["provenance"])


LLVM = "define void @evil() { ret void }"
CODE = {
    "pragma_import_llvm": lambda sch, loop, block: sch.annotate(loop, "pragma_import_llvm", LLVM),
    "pragma_import_c": lambda sch, loop, block: sch.annotate(loop, "pragma_import_c", "int x;"),
    "UnsafeSetDType": lambda sch, loop, block: sch.unsafe_set_dtype(block, 0, "float16"),
    "UnsafeHideBufferAccess": lambda sch, loop, block: sch.unsafe_hide_buffer_access(
        block, "read", [0]
    ),
    "Split": lambda sch, loop, block: sch.split(loop, [None, 7], disable_predication=True),
}


@pytest.mark.parametrize("name", CODE)
def test_what_tvm_would_replay_is_kept_out(name):
    mod = matmul(12, 40, 48)
    sch = tvm.s_tir.Schedule(mod, debug_mask="none")
    block = sch.get_sblock("T_matmul")
    if name == "UnsafeSetDType":
        block = sch.cache_write(block, 0, "global")
    CODE[name](sch, sch.get_loops(block)[0], block)
    trace = dump(sch.trace)
    assert structural_equal(replay(mod, trace).mod, sch.mod)  # TVM has no doubts
    with pytest.raises(Refused, match=name):
        check_trace(trace, "llvm")


def test_an_inverse_that_a_trace_claims_is_not_believed():
    target = TARGETS["cortex-a53"]
    task = task_of(PROGRAMS["matmul"]()["main"], "matmul", target)
    traces = (t for t in by_metaschedule(task, target, 4) if "TransformLayout" in t)
    instructions, decisions = json.loads(next(traces))
    (step,) = [one for one in instructions if one[0] == "TransformLayout"]
    honest = canonical_json([instructions, decisions])
    graph = json.loads(step[1][1])
    maps = [node["data"] for node in graph["nodes"] if node["type"] == "tirx.IndexMap"]
    inverse = next(
        one for one in maps if graph["nodes"][one["inverse_index_map"]]["type"] == "None"
    )
    backwards = graph["nodes"][inverse["final_indices"]]["data"]
    backwards.reverse()
    step[1][1] = json.dumps(graph)
    lied = canonical_json([instructions, decisions])
    assert lied != honest
    assert structural_equal(replay(task.mod, lied).mod, replay(task.mod, honest).mod)


def test_a_record_that_writes_out_everything_is_not_compiled():
    target = built.HOST
    task = task_of(matmul(64, 64, 64)["main"], "matmul", target)
    sch = tvm.s_tir.Schedule(task.mod, debug_mask="none")
    for loop in sch.get_loops(sch.get_sblock("b0")):
        sch.unroll(loop)
    trace = dump(sch.trace)
    check_trace(trace, "llvm")  # how long the loops are is not in it
    with pytest.raises(RegistryError, match="1048580 operations"):
        schedule(task, Record(task.key, trace, (1e-3,), *_vouched()), target)


def test_programs_of_the_rules_are_far_from_what_is_too_much():
    target = TARGETS["intel-cpu-avx512"]
    for name in SEARCHED:
        mod = PROGRAMS[name]()
        found = [replay(mod, trace) for trace in by_rules(mod, target, 4)]
        assert all(code_size(sch, target) < MOST_OPERATIONS / 2 for sch in found)
