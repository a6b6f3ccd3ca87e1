"""A model file becomes tasks: read, bind shapes, canonicalise, import, extract."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import blaming
from ..registry.record import TaskKey
from ..target import Target
from .canonicalize import canonical_graph
from .graph.foreign import declare_foreign
from .graph.nodes import PlacedCall
from .misfit import check_sizes
from .onnx.file import load
from .operators.support import refuse_early
from .shapes import bound, explained
from .tasks import Task

if TYPE_CHECKING:
    from onnx import ModelProto

    from .graph.graph import Graph
    from .relax.importer import Imported


@dataclass(frozen=True)
class Prepared:
    """A model ready to be planned, tuned and compiled.

    protos: the model as it was read, with static shapes, once for each of its shapes: what the
    oracle runs. imported: all of them. by_function: the task of each function that it calls.
    others: the calls of functions that are no task, in the order of a run.
    """

    path: Path
    digest: str
    external: tuple[Path, ...]
    protos: tuple[Any, ...] = field(repr=False)
    imported: Imported = field(repr=False)
    by_function: dict[str, Task] = field(repr=False)
    others: tuple[PlacedCall, ...] = field(default=(), repr=False)

    @property
    def tasks(self) -> list[Task]:
        """The unique tasks, in the order of the module."""
        return list({task.key: task for task in self.by_function.values()}.values())


def prepare(
    path: Path,
    target: Target,
    input_shapes: Sequence[Mapping[str, tuple[int, ...]]] = ({},),
    stage: Callable[[str, str], None] = lambda name, detail: None,
    step: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Prepared:
    """Read a model for a target; ModelError says what of it cannot be compiled.

    input_shapes: the shapes of inputs by name, once or, for a library of several, more often.
    stage: is called with the name and a detail of each stage that begins. step: with what a stage
    has done of something, and of how many.
    """
    stage("read", str(path))
    digest, external, protos = _read(path, input_shapes)
    with blaming(path):
        with explained(path, input_shapes):
            graphs = [_sound_graph(proto) for proto in protos]
        for proto, graph in zip(protos, graphs, strict=True):
            declare_foreign(proto, graph)
        stage("import", f"{len(protos[0].graph.node)} nodes")
        # Here, since they load TVM, which a model that is refused does not need.
        from .relax.extract import extract
        from .relax.importer import import_model
        from .relax.labels import calls, placed
        from .relax.variants import joined

        steps = partial(step, "passes")
        imported = joined([import_model(graphs.pop(0), target, steps) for _ in protos])
        stage("tasks", f"of {len(imported.mod.functions) - len(protos)} fused functions")
        called = tuple(calls(imported))
        tasks = placed(extract(imported.mod, target, partial(step, "tasks")), called)
    others = tuple(one for one in called if one[0] not in tasks)
    return Prepared(path, digest, external, protos, imported, tasks, others)


def _sound_graph(proto: ModelProto) -> Graph:
    graph = canonical_graph(proto)
    check_sizes(graph)
    return graph


def _read(
    path: Path, input_shapes: Sequence[Mapping[str, tuple[int, ...]]]
) -> tuple[str, tuple[Path, ...], tuple[Any, ...]]:
    """The model's digest, its external files, and the model with the inputs of each of the shapes.

    The model as it was read, which has the weights once more, is let go of.
    """
    source = load(path)
    with blaming(path):
        refuse_early(source.proto)
        protos = tuple(bound(source.proto, shapes) for shapes in input_shapes)
    return source.digest, source.external, protos


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
