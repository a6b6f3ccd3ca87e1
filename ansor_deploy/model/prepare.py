"""A model file becomes tasks: read, bind shapes, canonicalise, import, extract."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import ModelError, UsageError, blaming
from ..registry.record import TaskKey
from ..runtime.batches import tried_size
from ..runtime.lengths import tried_together
from ..target import Target
from .assumed import assumed
from .batches import Asked, Batch, Given, Span, Values, shapes_of, span_of, values_of, with_rows
from .caches import Opened, assumed_rows, fixed_caches
from .canonicalize import canonical_graph
from .counted import caches, ranges
from .fixed_inputs import proposing_values, with_values
from .graph.foreign import declare_foreign
from .graph.nodes import PlacedCall
from .misfit import check_sizes, misfit
from .onnx.class_labels import Labels
from .onnx.file import OnnxModel, load
from .operators.support import refuse_early
from .ranges import Range, at_sizes
from .shapes import bound, explained, instead, options
from .tasks import Task

if TYPE_CHECKING:
    from onnx import ModelProto

    from .graph.graph import Graph
    from .relax.importer import Imported

    Opening = tuple[ModelProto, Callable[[Graph], None]]  # a model, and what leaves its sizes open


@dataclass(frozen=True)
class Prepared:
    """A model ready to be planned, tuned and compiled.

    labels: of outputs whose numbers stand for classes, these. protos: the model as it was read,
    with static shapes, once for each of its shapes, or for some lengths of its context: what the
    oracle runs. batch: the batches that it takes beside them, in parts, of which one is the last of
    the protos; None where there are none. range: the lengths that it takes; None where they are
    fixed. imported: all shapes that there is to be code for.
    by_function: the task of each function that it calls. others: the calls of functions that are no
    task, in the order of a run.
    """

    path: Path
    digest: str
    external: tuple[Path, ...]
    labels: Mapping[str, Labels]
    protos: tuple[Any, ...] = field(repr=False)
    imported: Imported = field(repr=False)
    by_function: dict[str, Task] = field(repr=False)
    others: tuple[PlacedCall, ...] = field(default=(), repr=False)
    batch: Batch | None = None
    ranges: tuple[Range, ...] = ()

    @property
    def tasks(self) -> list[Task]:
        """The unique tasks, in the order of the module."""
        return list({task.key: task for task in self.by_function.values()}.values())


class _Source(NamedTuple):
    """What is known of a file beside its graph."""

    digest: str
    external: tuple[Path, ...]
    labels: Mapping[str, Labels]

    @classmethod
    def of(cls, model: OnnxModel) -> _Source:
        return cls(model.digest, model.external, model.labels)


def prepare(
    path: Path,
    target: Target,
    input_shapes: Sequence[Given] = ({},),
    stage: Callable[[str, str], None] = lambda name, detail: None,
    step: Callable[[str, int, int], None] = lambda what, done, total: None,
    rows: int = 0,
) -> Prepared:
    """Read a model for a target; ModelError says what of it cannot be compiled.

    input_shapes: of inputs by name, once, maybe with a range; more often for a library of several;
    or the number that an input is in all runs.
    stage: is called with the name and a detail of each stage that begins. step: with what a stage
    has done of something, and of how many. rows: that caches have room for; 0 where the model says.
    """
    stage("read", str(path))
    values, shapes = values_of(input_shapes[0]), [*map(shapes_of, input_shapes)]
    source, proto = _loaded(path, values)
    sizes = _Sizes.of(proto, values, *_completed(proto, shapes, rows, stage))
    with blaming(path), proposing_values(proto):
        protos, opened = _opened(proto, sizes)
        del proto  # it has the weights once more
        try:
            with instead(sizes.fixed if sizes.lengths else {}):
                graphs = _sound_graphs(path, sizes.tried, protos, opened)
        except ModelError as error:
            if not sizes.may_be_fixed:
                raise
            del protos, opened
            stage("sizes", f"{options(sizes.fixed)} alone, since {error.text}")
            return prepare(path, target, [{**sizes.fixed, **values}], stage, step)
        del opened  # it has the weights once more
        stage("import", f"{len(protos[0].graph.node)} nodes")
        # Here, since they load TVM, which a model that is refused does not need.
        from .relax.extract import extract
        from .relax.labels import calls, placed
        from .relax.variants import joined

        each, more, batch = _imported(path, target, sizes, graphs, partial(step, "passes"))
        imported = joined(each)
        stage("tasks", f"of {len(imported.mod.functions) - len(each)} fused functions")
        called = tuple(calls(imported))
        tasks = placed(extract(imported.mod, target, partial(step, "tasks")), called)
    others = tuple(one for one in called if one[0] not in tasks)
    protos = (*protos, *more)
    return Prepared(path, *source, protos, imported, tasks, others, batch, sizes.lengths)


class _Sizes(NamedTuple):
    """The sizes of a model's inputs: what was asked for, and what of it is bound.

    tried: the shapes that are bound, the largest first. lengths: the ranges that are left open.
    span: of batches. rows: that caches have room for. fixed: one shape, which does instead where
    may_be_fixed says so. values: what other inputs are in all runs.
    """

    values: Values
    asked: Asked
    rows: int
    may_be_fixed: bool
    lengths: tuple[Range, ...]
    span: Span | None
    tried: Sequence[Mapping[str, tuple[int, ...]]]
    fixed: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(
        cls,
        proto: ModelProto,
        values: Values,
        shapes: Sequence[Asked],
        rows: int,
        may_be_fixed: bool,
    ) -> _Sizes:
        """The sizes of these shapes."""
        first = shapes[0]
        lengths = ranges.asked_of(proto, first)
        span = None if lengths else span_of(first)
        least = [with_rows(one, span.least if span else 0) for one in shapes]
        tried = _tried(first, lengths) if lengths else least
        fixed = fixed_caches(proto, tried[0]) if rows and may_be_fixed else tried[0]
        return cls(values, first, rows, may_be_fixed, lengths, span, tried, fixed)


def _opened(proto: ModelProto, sizes: _Sizes) -> tuple[tuple[ModelProto, ...], list[Opening]]:
    """The model with each of its shapes, and what is compiled where that is of open sizes."""
    if sizes.lengths and (fault := misfit(proto, sizes.tried[-1])):
        raise ModelError(f"with the least length, {fault}", "let the range begin with more")
    protos, opened = _bound(proto, sizes.tried, sizes.rows)
    if sizes.lengths:
        opened = [(protos[0], partial(ranges.prepare, asked=sizes.lengths))]
    return protos, opened


def _imported(
    path: Path,
    target: Target,
    sizes: _Sizes,
    graphs: list[Graph],
    steps: Callable[[int, int], None],
) -> tuple[list[Imported], tuple[ModelProto, ...], Batch | None]:
    """What there is to be code for, and what a range of batches adds: models, and which they are.

    graphs: are taken from the list, since they have the weights.
    """
    from .relax.importer import import_model

    each = [import_model(graphs.pop(0), target, steps) for _ in list(graphs)]
    if sizes.span is None:
        return each, (), None
    batch = _batch(sizes.span, sizes.asked, each[0])
    protos, graphs = _of_batch(path, sizes, batch)
    each += [import_model(graphs.pop(0), target, steps) for _ in list(graphs)]
    _check(each[-1], batch)
    return each, protos, batch


def _completed(
    proto: ModelProto, shapes: Sequence[Asked], rows: int, stage: Callable[[str, str], None]
) -> tuple[Sequence[Asked], int, bool]:
    """Shapes, and rows of caches, with those that are assumed; whether these may be fixed instead.

    Ranges may, and what caches have room for.
    """
    if rows and (span_of(shapes[0]) or len(shapes) > 1):
        raise UsageError("a context is of one shape", "give --context, or several shapes")
    if rows or len(shapes) > 1:
        return shapes, rows, False
    if not span_of(shapes[0]) and (rows := assumed_rows(proto, with_rows(shapes[0], 0))):
        stage("sizes", f"--context {rows}, since the file leaves the rows of its caches open")
        return shapes, rows, True
    if not (found := assumed(proto, shapes[0])):
        return shapes, 0, False
    stage("sizes", f"{options(found)}, which the file leaves open")
    may_be_fixed = span_of(found) is not None and span_of(shapes[0]) is None
    return [{**shapes[0], **found}], 0, may_be_fixed


def _sound_graphs(
    path: Path,
    shapes: Sequence[Mapping[str, tuple[int, ...]]],
    protos: Sequence[ModelProto],
    opened: Sequence[Opening] = (),
) -> list[Graph]:
    with explained(path, shapes):
        graphs = [_sound_graph(*one) for one in opened or zip(protos, repeat(_nothing))]
    for proto, graph in zip(protos, cycle(graphs), strict=False):
        declare_foreign(proto, graph)
    return graphs


def _nothing(graph: Graph) -> None:
    """Leave no size open."""


def _sound_graph(proto: ModelProto, open_sizes: Callable[[Graph], None]) -> Graph:
    graph = canonical_graph(proto, open_sizes)
    check_sizes(graph)
    return graph


def _batch(span: Span, shapes: Asked, first: Imported) -> Batch:
    """The batches that a model is asked to take."""
    from .relax.extract import bytes_of_weights, operations

    return Batch.of(span, shapes, operations(first.mod), bytes_of_weights(first.mod))


def _of_batch(
    path: Path, asked: _Sizes, batch: Batch
) -> tuple[tuple[ModelProto, ...], list[Graph]]:
    """The model with the other sizes of a batch, and at last that by which parts are tried.

    The graphs are of those that there is to be code for.
    """
    sizes = list(batch.sizes())
    tried = tried_size(sizes, batch.most)
    bound_to = [with_rows(asked.asked, rows) for rows in (*sizes[1:], *([tried] if tried else []))]
    protos, _ = _bound(_loaded(path, asked.values)[1], bound_to, 0)
    count = len(sizes) - 1
    return protos, _sound_graphs(path, bound_to[:count], protos[:count]) if count else []


def _check(imported: Imported, batch: Batch) -> None:
    """ModelError where rows of a batch are not computed apart."""
    from .relax.rows import check_rows

    (rows,) = {imported.interfaces[0].input_shapes[name][0] for name in batch.inputs}
    check_rows(imported, rows, batch.inputs)


def _tried(shapes: Asked, lengths: Sequence[Range]) -> list[dict[str, tuple[int, ...]]]:
    """The shapes by which ranges are tried, the largest first."""
    ends = [(one.least, one.most, one.step) for one in lengths]
    return [at_sizes(shapes, lengths, sizes) for sizes in tried_together(ends)]


def _loaded(path: Path, values: Values) -> tuple[_Source, ModelProto]:
    """What a model is read from, and the model, in which inputs of these names are constants."""
    source = load(path)
    with blaming(path):
        proto = with_values(source.proto, values)
        refuse_early(proto)
    return _Source.of(source), proto


def _bound(
    proto: ModelProto, input_shapes: Sequence[Mapping[str, tuple[int, ...]]], rows: int
) -> tuple[tuple[Any, ...], list[Opening]]:
    """The model with the inputs of each of the shapes.

    And, of one with a context, what is compiled: with what its length changes left open.
    """
    if not rows:
        return tuple(bound(proto, shapes) for shapes in input_shapes), []
    whole = Opened.of(proto, input_shapes[0], rows)
    keep = partial(caches.prepare, context=whole.context)
    return tuple(map(whole.bound, whole.context.samples)), [(whole.opened(), keep)]


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
