"""Templates for the files of a new rule: one that works, for its author to change, and its test."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import UsageError
from ..system.atomic_file import write_whole

_RULE = '''\
"""{title}: results that one core has written before a second one wakes stay on one core.

for i: y[i] = f(x[i])
-->
for i / lanes: vectors of lanes: y[i] = f(x[i])
"""

import math

from ansor_deploy.space import ApplyAndSkipRest, Pass, vectorized

NAME = "{name}"
KINDS = ("llvm",)

LARGEST = 1024  # results


def applies(state, block, target):
    view = state.view(block)
    if view.is_reduction or view.consumers or not view.spatial:
        return Pass("it reduces, is no output, or has no loop")
    if (results := math.prod(view.spatial)) > LARGEST:
        return Pass(f"its {{results}} results are work for several cores")
    return ApplyAndSkipRest()


def apply(state, block, target):
    rv = state.view(block).rv
    vectorized(state.sch, state.sch.get_loops(rv)[-1], target)
    state.finish(rv)
    return [state]
'''
_TEST = '''\
"""What {name} does, and that it keeps the contract of rules: run by pytest."""

from pathlib import Path

from ansor_deploy.space import tvm
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target
from ansor_deploy.testing.rule import RuleContract


class Test{camel}(RuleContract):
    golden = Path(__file__).with_name("{stem}.txt")  # the drawing of what it does
    update = not golden.exists()  # remove the file where a change of it is right

    def rule(self):
        return Path(__file__).parents[1] / "rules" / "{stem}.py"

    def target(self):
        return load_target("cortex-a53", [shipped("targets")])

    def program(self):
        x = tvm.te.placeholder((4, 64), "float32", "x")
        y = tvm.te.compute((4, 64), lambda i, j: x[i, j] * 2.0, "y")
        func = tvm.te.create_prim_func([x, y]).with_attr("global_symbol", "main")
        return tvm.IRModule({{"main": func}})

    def block(self):
        return "y"
'''
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def write_rule(name: str, root: Path, marker: str) -> list[Path]:
    """Write a rule and its test below a folder. Returns the paths. marker: the file of a project.

    The marker is written, too, where there is none: without it the folder's rules do not count.
    UsageError where the name is not valid, or one of the files exists.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name for a rule", "write it like serial-small")
    stem = name.replace("-", "_")
    title, camel = name.replace("-", " ").capitalize(), name.title().replace("-", "")
    words = {"name": name, "stem": stem, "title": title, "camel": camel}
    texts = {
        root / "rules" / f"{stem}.py": _RULE.format(**words),
        root / "tests" / f"test_{stem}.py": _TEST.format(**words),
    }
    if there := [path for path in texts if path.exists()]:
        raise UsageError("it is there already", "give the rule another name", there[0])
    if not (root / marker).exists():
        texts[root / marker] = ""
    for path, text in texts.items():
        write_whole(path, text.encode(), durable=False)
    return list(texts)
