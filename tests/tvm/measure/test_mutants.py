"""Wrong candidates, all refused; right ones, all accepted."""

import random
from functools import cache

import pytest
from helpers import programs
from helpers.mutants import MUTANTS, PROGRAMS, mutant
from helpers.suspects import TARGET, compute, task

from ansor_deploy.measure.outcome import Outcome
from ansor_deploy.model.relax.extract import task_of
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.question import Random
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.trace import dump

pytestmark = pytest.mark.slow


@cache
def task_of_program(name):
    return task(PROGRAMS[name][0], f"fused_{name}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_as_it_stands_is_accepted(court, name):
    outcome = court.program(task_of_program(name), PROGRAMS[name][0])
    assert (outcome.error, outcome.message) == ("", "")


@pytest.mark.parametrize(("name", "edit"), MUTANTS)
def test_a_mutant_is_refused(court, name, edit):
    # A race is lost only where the threads meet. On a machine with other work the second one may
    # stay away for seconds, so this goes on for a minute; the first try is nearly always enough.
    tries = 200 if edit == "parallel reduction" else 1
    outcomes = (court.program(task_of_program(name), mutant(name, edit)) for _ in range(tries))
    outcome = next((one for one in outcomes if one.error), Outcome(""))
    assert outcome.error in ("wrong-output", "crash")
    assert outcome.seconds == ()
    assert outcome.message


# Libraries in C do what no program can be made to do by an edit.

WRONG_LIBRARIES = {
    "returns early the second time": "if (calls == 1) doubled(x, y);",
    "returns early when timed": "if (calls < 3) doubled(x, y);",
    "adds to what it made before": (
        "static float sums[N];\n  for (int i = 0; i < N; i++) y[i] = sums[i] += 2 * x[i];"
    ),
    "adds to its output": "for (int i = 0; i < N; i++) y[i] += 2 * x[i];",
    "right the first time": "doubled(x, y); if (calls > 1) y[7] = 0;",
    "right the first hundred times": "doubled(x, y); if (calls > 100) y[7] = 0;",
    "the right bits a row late": "doubled(x, y); memmove(y, y + 64, (N - 64) * 4);",
    "clears its input": "doubled(x, y); memset(x, 0, N * 4);",
    "works in its input": "for (int i = 0; i < N; i++) y[i] = x[i] *= 2;",
    "changes one bit of its input": "doubled(x, y); ((char *)x)[N * 4 - 1] ^= 1;",
    "writes before its output": "doubled(x, y); y[-1] = 1;",
    "writes behind its output": "doubled(x, y); y[N] = 1;",
    "writes a row too many": "doubled(x, y); memcpy(y + N, y, 256);",
    "writes before its input": "doubled(x, y); x[-1] = 1;",
    "writes behind its input": "doubled(x, y); x[N + 63] = 1;",
    "writes behind, once timed": "doubled(x, y); if (calls > 2) y[N] = 1;",
    "reads behind its input": "for (int i = 0; i < N; i++) y[i] = 2 * x[i + 1];",
    "reads before its input": "for (int i = 0; i < N; i++) y[i] = 2 * x[i - 1];",
    "reads memory that it never wrote": (
        "float *made = malloc(N * 4); doubled(x, y); memcpy(y + 2048, made, 4096); free(made);"
    ),
    "swaps input and output": "for (int i = 0; i < N; i++) x[i] = 2 * y[i];",
    "does nothing": "(void)x;",
    "quiet zeros": "memset(y, 0, N * 4);",
    "negative zero for NaN": "doubled(x, y); y[0] = 0.0f / 0.0f;",
}


@pytest.mark.parametrize("body", WRONG_LIBRARIES.values(), ids=WRONG_LIBRARIES)
def test_a_library_that_is_not_right_each_time_or_strays_is_refused(court, body):
    outcome = court.library(compute(body))
    assert (outcome.error, outcome.seconds) == ("wrong-output", ())


def test_a_library_in_c_that_is_right_is_accepted(court):
    outcome = court.library(compute("doubled(x, y);"))
    assert (outcome.error, outcome.message) == ("", "")
    assert outcome.proof["max_abs_err"] == 0


@pytest.mark.parametrize(
    "source",
    [
        "EXPORTED __tvm_ffi_calculate(PARAMETERS) { return 0; }",
        compute("doubled(x, y); return fail();"),
    ],
    ids=["lacks compute", "fails"],
)
def test_a_library_without_a_compute_that_ends_well_cannot_run(court, source):
    outcome = court.library(source)
    assert (outcome.error, outcome.seconds) == ("run", ())
    assert court.right().error == ""


PACK = {
    "function": "pack_0",
    "arguments": [["task", 0], ["made", 0]],
    "makes": [{"shape": [64, 64], "dtype": "float32"}],
}
PACKED = {"function": "compute", "arguments": [["made", 0], ["task", 1]], "makes": []}


def packing(pack, work):
    """A library that packs its input, and computes from what it packed."""
    body = compute(work) + compute(pack).replace("compute", "pack_0")
    return body, PACK, PACKED


def test_packed_weights_are_computed_from(court):
    assert court.library(*packing("memcpy(y, x, N * 4);", "doubled(x, y);")).error == ""


@pytest.mark.parametrize(
    ("pack", "work"),
    [
        ("memcpy(y, x, N * 4); y[63] = y[64];", "doubled(x, y);"),
        ("memcpy(y, x, N * 4 - 4);", "doubled(x, y);"),
        ("memcpy(y, x, N * 4); memset(x, 0, N * 4);", "doubled(x, y);"),
        ("memcpy(y, x, N * 4); y[N] = 0;", "doubled(x, y);"),
        ("memcpy(y, x, N * 4);", "doubled(x, y); memset(x, 0, N * 4);"),
        ("memcpy(y, x, N * 4);", "for (int i = 0; i < N; i++) y[i] = x[i] *= 2;"),
    ],
    ids=[
        "packed wrong",
        "a tail is not packed",
        "clears the weights",
        "packs too much",
        "clears the packed",
        "works in the packed",
    ],
)
def test_wrong_packing_is_refused(court, pack, work):
    outcome = court.library(*packing(pack, work))
    assert (outcome.error, outcome.seconds) == ("wrong-output", ())


@pytest.mark.parametrize(
    "body", ["memset(x, 0, N * 4); return fail();", "x[N] = x[-1] = 0; return fail();"]
)
def test_what_a_candidate_spoilt_before_it_failed_does_no_harm_to_the_next(court, body):
    assert court.library(compute(body)).error == "run"
    assert court.library(compute("doubled(x, y);")).error == ""


# Twenty random programs each, of the kinds of operator that networks consist of

GOOD = (
    "conv 13x13",
    "conv residual",
    "depthwise",
    "grouped",
    "matmul",
    "batched",
    "int8 product",
    "float16 product",
    "max pool",
    "softmax",
)
RANDOM_PROGRAMS = 20


@pytest.mark.parametrize("name", GOOD)
def test_random_programs_of_our_sketches_are_accepted(court, name):
    of = task_of(programs.PROGRAMS[name]()["main"], name, TARGET)
    sketches = derive(of.mod, TARGET, shipped_rules(TARGET.kind)).sketches
    rng = random.Random(name)
    outcomes = court.measurer.measure(
        of,
        [dump(rng.choice(sketches).program(Random(rng)).sch.trace) for _ in range(RANDOM_PROGRAMS)],
    )
    assert [(o.error, o.message) for o in outcomes] == [("", "")] * RANDOM_PROGRAMS
