"""What a schedule writes out is counted, and too much of it never reaches a compiler."""

from itertools import pairwise

import pytest
import tvm
from helpers import built
from helpers.graphs import dense, model, node
from helpers.programs import PROGRAMS, matmul
from tvm import te
from tvm_ffi import structural_equal

from ansor_deploy.codegen.kernels.candidate import build
from ansor_deploy.codegen.model import compile_model
from ansor_deploy.model.relax.extract import extract, task_of
from ansor_deploy.ship.verify.tolerance import compare
from ansor_deploy.space.code_size import MOST_OPERATIONS, TooMuchCodeError, code_size
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.question import Guess
from ansor_deploy.space.rule import load_rule, shipped_rules
from ansor_deploy.space.trace import dump
from ansor_deploy.tune.search.genome import program

TARGET = built.with_vectors(64)

# Writes out every iteration of whatever it is asked about.
GREEDY = """
from ansor_deploy.space import ApplyAndSkipRest

NAME = "greedy"
KINDS = ("llvm",)


def applies(state, block, target):
    return ApplyAndSkipRest()


def apply(state, block, target):
    for loop in state.sch.get_loops(state.block(block)):
        state.sch.unroll(loop)
    state.finish(state.block(block))
    return [state]
"""


@pytest.fixture(scope="module")
def greedy(tmp_path_factory):
    path = tmp_path_factory.mktemp("rules") / "greedy.py"
    path.write_text(GREEDY)
    return load_rule(path)


def product():
    """A schedule of 16 x 64 x 64 multiply-adds, its block and its loops."""
    a, b = te.placeholder((16, 64), name="a"), te.placeholder((64, 64), name="b")
    k = te.reduce_axis((0, 64), name="k")
    c = te.compute((16, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    sch = tvm.s_tir.Schedule(te.create_prim_func([a, b, c]), debug_mask="none")
    return sch, sch.get_sblock("c"), sch.get_loops(sch.get_sblock("c"))


def test_a_loop_counts_once_however_long():
    sch, *_ = product()
    assert code_size(sch, TARGET) == 4  # the initial zero; a product, a sum and their store


def test_vectors_count_by_the_registers_that_they_fill():
    sch, block, (_, columns, steps) = product()
    sch.reorder(steps, columns)
    sch.vectorize(columns)
    sch.decompose_reduction(block, steps)
    assert code_size(sch, TARGET) == 4 * 4
    assert code_size(sch, built.with_vectors(16)) == 4 * 16


def test_unrolled_loops_multiply_through_blocks_within_blocks():
    sch, _, loops = product()
    for loop in loops:
        sch.unroll(loop)
    assert code_size(sch, TARGET) == 4 * 16 * 64 * 64
    sch.blockize(loops[1])  # the initial zeros stay outside
    assert code_size(sch, TARGET) == (1 + 3 * 64) * 16 * 64


@pytest.mark.parametrize(("most", "copies"), [(512, 512), (1 << 20, 64 * 64)])
def test_a_pragma_counts_up_to_its_limit(most, copies):
    sch, _, (rows, *_) = product()
    sch.annotate(rows, "pragma_auto_unroll_max_step", most)
    sch.parallel(rows)
    assert code_size(sch, TARGET) <= 4 * 16 * copies
    assert code_size(sch, TARGET) >= 4 * copies


def test_defaults_of_the_shipped_rules_are_far_from_too_much():
    for name, make in PROGRAMS.items():
        size = code_size(default_schedule(make(), TARGET), TARGET)
        assert size < MOST_OPERATIONS / 8, name


def test_a_rule_that_writes_out_too_much_is_named_and_left_out(greedy):
    mod, warnings = matmul(100, 100, 10), []
    rules = [greedy, *shipped_rules("llvm")]
    sch = default_schedule(mod, TARGET, rules, warnings.append)
    (warning,) = warnings
    assert "rule greedy would write out 404000 operations" in warning
    assert structural_equal(sch.mod, default_schedule(mod, TARGET).mod)


def test_where_every_rule_writes_out_too_much_plain_loops_are_left(greedy):
    mod = matmul(100, 100, 10)
    sch = default_schedule(mod, built.HOST, [greedy])
    assert code_size(sch, built.HOST) < 100
    have, want = built.kernel_outputs(sch.mod), built.kernel_outputs(mod)
    assert compare(have[-1], want[-1])[0]


def test_a_search_has_no_candidate_that_is_too_much(greedy):
    (sketch,) = derive(matmul(100, 100, 10), TARGET, [greedy]).sketches
    with pytest.raises(TooMuchCodeError):
        sketch.program(Guess())
    assert program([sketch], 0, Guess()) is None


def test_a_trace_that_writes_out_too_much_is_not_compiled(tmp_path):
    task = task_of(matmul(64, 64, 64)["main"], "matmul", built.HOST)
    sch = tvm.s_tir.Schedule(task.mod, debug_mask="none")
    for loop in sch.get_loops(sch.get_sblock("b0")):
        sch.unroll(loop)
    payload = {"text": task.workload.text, "how": "trace", "trace": dump(sch.trace)}
    with pytest.raises(TooMuchCodeError):
        build({**payload, "target": built.HOST.to_json(), "path": str(tmp_path / "a.so")})


def test_a_build_names_the_task_and_the_rule(greedy):
    model, warnings = built.imported(dense(100, 100, rows=10)), []
    tasks = extract(model.mod, built.HOST)
    rules = [greedy, *shipped_rules("llvm")]
    compile_model(model, tasks, {}, built.HOST, rules, warnings.append)
    assert [w for w in warnings if w.startswith("task matmul") and "rule greedy" in w]


def test_a_chain_that_reads_every_stage_twice_is_not_written_out():
    names = ["x", *(f"h{at}" for at in range(13)), "y"]
    proto = model([node("HardSwish", a, b) for a, b in pairwise(names)], {"x": [8, 64]})
    (task,) = extract(built.imported(proto).mod, built.HOST).values()
    assert len(default_schedule(task.mod, built.HOST).mod.script()) < 100_000
    built.assert_like_oracle(proto)
