"""What each shipped rule draws in its docstring it does: the loops before and after, as files.

`pytest tests/tvm/test_rule_drawings.py --update-golden` writes them anew; then read the diff.
"""

import re
from pathlib import Path

import numpy as np
import pytest
import tvm
from helpers import built
from helpers.programs import _in, add, program, reduce, softmax
from tvm import te, topi

from ansor_deploy.project import shipped
from ansor_deploy.space.rule import Pass, shipped_rules
from ansor_deploy.space.state import Guess, State
from ansor_deploy.target import load_target

GOLDEN = Path(__file__).parents[2] / "golden"
# Machines that are the same everywhere; the first has four lanes, 32 registers and four cores.
TARGETS = {
    "llvm": load_target("cortex-a53", [shipped("targets")]),
    "cuda": load_target("v100", [shipped("targets")]),
}
RULES = {rule.path.stem: rule for kind in TARGETS for rule in shipped_rules(kind)}
NOISE = re.compile(r"#|from |@|class |def |T\.func_attr|T\.reads|T\.writes|with T\.sblock\(\"root")


def product():
    x, w = _in(12, 8), _in(8, 32)
    return program([x, w], topi.nn.relu(topi.matmul(x, w)), free=(1,))


def bare_product():
    x, w = _in(4, 8), _in(8, 16)
    return program([x, w], topi.matmul(x, w))


def chain():
    x = _in(4, 8)
    return program([x], topi.nn.relu(topi.add(x, 1.0)))


def spread():
    """A convolution over an axis whose every second element is an inserted zero."""
    x, w = _in(6, 4), _in(4, 4, 8)
    r, k = te.reduce_axis((0, 4)), te.reduce_axis((0, 4))

    def at(i, c):
        even = (i + r) % 2 == 0
        return te.sum(
            tvm.tirx.if_then_else(even, x[(i + r) // 2, k], 0.0) * w[r, k, c], axis=[r, k]
        )

    return program([x, w], topi.nn.relu(te.compute((8, 8), at, name="conv")), free=(1,))


# For each rule a program, and the block at which the rule applies.
EXAMPLES = {
    "always_inline": (chain, "T_add"),
    "add_cache_stage": (bare_product, "T_matmul"),
    "transposed": (spread, "conv"),
    "register_tile": (product, "T_matmul"),
    "row_fusion": (lambda: softmax(4, 16), "T_softmax_norm"),
    "reduction_factorisation": (lambda: reduce("sum", 2, 65536, axis=1), "x_red"),
    "multi_level_tiling_with_fusion": (product, "T_matmul"),
    "multi_level_tiling": (bare_product, "T_matmul"),
    "skip": (lambda: add(4, 8), "T_add"),
    "thread_tile": (product, "T_matmul"),
    "cross_thread_reduction": (lambda: reduce("sum", 2, 1024, axis=1), "x_red"),
}


def drawing(mod):
    """The program's loops, axes and statements; without what restates them."""
    lines = [line for line in mod.script().splitlines() if line.strip()]
    kept = [line for line in lines if not NOISE.match(line.strip())]
    return "\n".join(line.removeprefix(" " * 8) for line in kept)


def applied(rule, mod, block):
    state = State(tvm.s_tir.Schedule(mod, debug_mask="none"), Guess(), block)
    target = TARGETS[rule.kinds[0]]
    verdict = rule.applies(state, block, target)
    assert not isinstance(verdict, Pass), verdict
    first, *_ = rule.apply(state, block, target)
    return first.sch.mod


def test_every_rule_has_a_drawing():
    assert set(EXAMPLES) == set(RULES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_drawing(name, request):
    make, block = EXAMPLES[name]
    rule = RULES[name]
    before = make()
    after = applied(rule, before, block)
    found = f"{drawing(before)}\n-->\n{drawing(after)}\n"
    path = GOLDEN / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")
    if "llvm" not in rule.kinds:  # test_gpu_rules.py has what these compute
        return
    for have, want in zip(built.kernel_outputs(after), built.kernel_outputs(before), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", RULES)
def test_the_docstring_draws_before_and_after(name):
    before, arrow, after = RULES[name].doc.partition("\n-->\n")
    assert arrow
    assert "for " in before
    assert "for " in after or "parallel " in after
