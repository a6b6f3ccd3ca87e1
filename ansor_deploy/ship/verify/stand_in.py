"""The stand-in of a library that cannot run here: the same import, compiled for this machine.

The import of a model is a module of programs that depend on no machine. Compiled untuned for this
machine, they show whether the import is right. They do not show whether the target's code
generation and its records are right.
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

# Models up to this size are emulated. An emulated core does some 4e8 operations a second, and with
# edge values there are six runs.
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
    width: int,
    progress: Callable[[int, int], None],
) -> BareModel:
    """A model's stand-in, written to a path and loaded.

    draft: the manifest of the library that it stands in for. precision: as in a request. bare: runs
    it. width: how many threads it may take; 0 for all. progress: called with how many kernels are
    compiled and how many there are.
    """
    target = this_machine()
    rules = shipped_rules(target.kind, precision)
    model_and_tasks = (model.imported, model.by_function)
    built = compile_model(*model_and_tasks, {}, target, rules, progress=progress)
    built.export(path, target)
    return bare.load(path, {**draft.to_json(), "target": target.to_json()}, width)
