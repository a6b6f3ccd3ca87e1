"""What is verified of a library that cannot run here: the same import, for this machine.

What an import makes of a model is a module of programs that know no machine. Compiled untuned for
this machine, they show whether the import is right; what they do not show is whether the target's
code generation and its records are.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...codegen.model import compile_model
from ...devices.bare import Bare, BareModel
from ...devices.machine import this_machine
from ...model.prepare import Prepared
from ...space.rule import shipped_rules
from ..manifest import Draft

# An emulated core does some 4e8 operations a second, and with edge values there are six runs.
EMULATED_FLOPS = 3e8


def is_small(model: Prepared) -> bool:
    """Whether an emulator runs a model in less time than a build takes."""
    return sum(task.weight * task.workload.flops for task in model.tasks) <= EMULATED_FLOPS


def make_stand_in(
    model: Prepared,
    path: Path,
    draft: Draft,
    precision: str,
    bare: Bare,
    width: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> BareModel:
    """A model's stand-in, written to a path and loaded.

    draft: the manifest of what it stands in for. precision: as of a request. bare: runs it. width:
    threads that it may take; 0 for all. progress: is called with the numbers of kernels that
    are compiled and that there are.
    """
    target = this_machine()
    rules = shipped_rules(target.kind, precision)
    model_and_tasks = (model.imported, model.by_function)
    built = compile_model(*model_and_tasks, {}, target, rules, progress=progress)
    built.export(path, target)
    return bare.load(path, {**draft.to_json(), "target": target.to_json()}, width)
