"""A model file becomes tasks: read, bind shapes, canonicalise, import, extract."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import blaming
from ..registry.record import TaskKey
from ..target import Target
from .bind import bind_shapes
from .canonicalize import canonicalize
from .onnx_file import load
from .operators.support import refuse_early
from .tasks import Task

if TYPE_CHECKING:
    from .importer import Imported


@dataclass(frozen=True)
class Prepared:
    """A model ready to be planned, tuned and compiled.

    proto: the model as it was read, with static shapes: what the oracle runs.
    by_function: the task of each function that the imported module calls.
    """

    path: Path
    digest: str
    external: tuple[Path, ...]
    proto: Any = field(repr=False)
    imported: Imported = field(repr=False)
    by_function: dict[str, Task] = field(repr=False)

    @property
    def tasks(self) -> list[Task]:
        """The unique tasks, in the order of the module."""
        return list({task.key: task for task in self.by_function.values()}.values())


def prepare(
    path: Path,
    target: Target,
    input_shapes: dict[str, tuple[int, ...]],
    stage: Callable[[str, str], None] = lambda name, detail: None,
    step: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Prepared:
    """Read a model for a target; ModelError says what of it cannot be compiled.

    stage: is called with the name and a detail of each stage that begins. step: with what a stage
    has done of something, and of how many.
    """
    stage("read", str(path))
    source = load(path)
    with blaming(path):
        refuse_early(source.proto)
        proto = bind_shapes(source.proto, input_shapes)
        canonical = canonicalize(proto)
        stage("import", f"{len(proto.graph.node)} nodes")
        # Here, since they load TVM, which a model that is refused does not need.
        from .extract import extract
        from .importer import import_model

        imported = import_model(canonical, target, partial(step, "passes"))
        stage("tasks", f"of {len(imported.mod.functions) - 1} fused functions")
        tasks = extract(imported.mod, target, partial(step, "tasks"))
    return Prepared(path, source.digest, source.external, proto, imported, tasks)


def merge(models: list[Prepared]) -> list[Task]:
    """The unique tasks of several models, each with its weights: in all, and a model."""
    found: dict[TaskKey, Task] = {}
    weights: dict[TaskKey, list[int]] = {}
    for number, model in enumerate(models):
        for task in model.tasks:
            found.setdefault(task.key, task)
            weights.setdefault(task.key, [0] * len(models))[number] = task.weight
    return [
        replace(task, weight=sum(weights[key]), weights=tuple(weights[key]))
        for key, task in found.items()
    ]
