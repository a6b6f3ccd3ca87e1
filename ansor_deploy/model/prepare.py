"""Turn a model file into tasks: read, bind shapes, canonicalise, import, extract."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, cycle, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import ModelError, UsageError, blaming
from ..registry.record import TaskKey
from ..runtime.batches import tried_size
from ..runtime.lengths import tried_together
from ..target import Target
from .assumed import assumed, one_size, too_large
from .batches import Asked, Batch, Given, Span, Values, shapes_of, span_of, values_of, with_rows
from .caches import Opened, assumed_rows, fixed_caches
from .canonicalize import canonical_graph
from .counted import caches, ranges
from .fixed_inputs import proposing_values, with_values
from .graph.foreign import declare_foreign
from .graph.nodes import PlacedCall
from .misfit import Trials, check_sizes
from .onnx.class_labels import Labels
from .onnx.file import OnnxModel, load
from .onnx.sets import name_sets
from .operators.support import refuse_early
from .ranges import Range, at_sizes
from .shapes import bound, explained, instead, options
from .tasks import Task

if TYPE_CHECKING:
    from onnx import ModelProto

    from .graph.graph import Graph
    from .relax.importer import Imported

    Opening = tuple[ModelProto, Callable[[Graph], None]]  # a model, and what opens its sizes


@dataclass(frozen=True)
class Prepared:
    """A model that is ready to be planned, tuned and compiled.

    labels: the classes that the numbers of some outputs stand for. protos: the model as it was
    read, with static shapes, which the oracle runs: one for each of its shapes, or for some lengths
    of its context. batch: the batch sizes that it takes by parts, and the last of the protos then
    tries the parts; None without a range. ranges: the lengths that it takes; empty where they are
    fixed. imported: the module with code for all shapes. by_function: the task of each function
    that is called. others: calls of functions that are no task, in the order of a run.
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
    """Read a model for a target. ModelError says which part of it cannot be compiled.

    input_shapes: shapes of inputs by name, maybe with a range, or the value that an input has in
    all runs. Several mappings make a library of several shapes. stage: called with the name and a
    detail of each stage when it begins. step: called with the name of a piece of work, how much of
    it is done, and the total. rows: the room of caches; 0 where the model decides.
    """
    stage("read", str(path))
    values, shapes = values_of(input_shapes[0]), [*map(shapes_of, input_shapes)]
    source, proto = _loaded(path, values)
    trials = Trials(proto)
    sizes = _Sizes.of(trials, values, *_completed(trials, shapes, rows, stage))
    with blaming(path), proposing_values(proto):
        protos, opened = _opened(trials, sizes)
        largest = sizes.tried[:1] if sizes.lengths else sizes.tried
        unsure = [one for one in largest if not trials.is_known_to_fit(one)]
        kept = [trials] if sizes.lengths else []
        del proto, trials  # they hold another copy of the weights
        try:
            with instead(sizes.fixed if sizes.lengths else {}):
                graphs = _sound_graphs(path, unsure, protos, opened)
            protos += tuple(chain.from_iterable(_smaller(one, sizes, graphs[0]) for one in kept))
        except ModelError as error:
            if not sizes.may_be_fixed:
                raise
            stage("sizes", f"{options(sizes.fixed)} alone, since {error.text}")
            del opened
            kept.clear()
            sizes, protos = _alone(path, sizes, protos)
            graphs, opened = _sound_graphs(path, (), protos), []
        del opened, kept  # each holds another copy of the weights
        stage("import", f"{len(protos[0].graph.node)} nodes")
        # Imported here because it loads TVM, which a refused model does not need.
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
    """The sizes of a model's inputs: as asked for, and as they are bound or left open.

    tried: the shapes that are bound, the largest first. lengths: the ranges that are left open.
    span: the range of the batch. rows: the room of caches. fixed: the one shape to bind instead of
    ranges, where may_be_fixed allows that. values: the values that other inputs have in all runs.
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
        trials: Trials,
        values: Values,
        shapes: Sequence[Asked],
        rows: int,
        may_be_fixed: bool,
    ) -> _Sizes:
        """The sizes that follow from the shapes that were asked for."""
        first = shapes[0]
        lengths = ranges.asked_of(trials, first)
        span = None if lengths else span_of(first)
        least = [with_rows(one, span.least if span else 0) for one in shapes]
        tried = _tried(first, lengths) if lengths else least
        fixed = fixed_caches(trials.proto, tried[0]) if rows and may_be_fixed else tried[0]
        return cls(values, first, rows, may_be_fixed, lengths, span, tried, fixed)


def _opened(trials: Trials, sizes: _Sizes) -> tuple[tuple[ModelProto, ...], list[Opening]]:
    """The model with each of its shapes, and the models to compile where sizes stay open.

    Of the shapes of a range only the largest is bound: `_smaller` binds the others.
    """
    if sizes.lengths and (fault := trials.misfit(sizes.tried[-1])):
        raise ModelError(
            f"with the smallest size of the range, {fault}",
            "let the range begin with a larger number",
        )
    protos, opened = _bound(trials, sizes.tried[:1] if sizes.lengths else sizes.tried, sizes.rows)
    if sizes.lengths:
        opened = [(protos[0], partial(ranges.prepare, asked=sizes.lengths))]
    return protos, opened


def _smaller(trials: Trials, sizes: _Sizes, graph: Graph) -> Iterator[ModelProto]:
    """The model with each shape of a range but the largest.

    Each is a copy of all weights, which a graph that is refused does not need.
    """
    for shapes in sizes.tried[1:]:
        proto = bound(trials, shapes)
        declare_foreign(proto, graph, shapes=False)
        yield proto


def _alone(
    path: Path, sizes: _Sizes, protos: tuple[ModelProto, ...]
) -> tuple[_Sizes, tuple[ModelProto, ...]]:
    """The fixed sizes instead of ranges or caches, and the model with them."""
    fixed = sizes.fixed
    if sizes.rows:
        protos = (bound(Trials(_loaded(path, sizes.values)[1]), fixed),)
    return _Sizes(sizes.values, fixed, 0, False, (), None, [fixed], fixed), protos[:1]


def _imported(
    path: Path,
    target: Target,
    sizes: _Sizes,
    graphs: list[Graph],
    steps: Callable[[int, int], None],
) -> tuple[list[Imported], tuple[ModelProto, ...], Batch | None]:
    """The modules to compile, and for a range of batches also its models and its Batch.

    graphs: the list is emptied on the way, since graphs hold the weights.
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
    trials: Trials, shapes: Sequence[Asked], rows: int, stage: Callable[[str, str], None]
) -> tuple[Sequence[Asked], int, bool]:
    """Shapes and rows of caches, with assumed ones; and whether fixed sizes may replace them.

    Assumed ranges and assumed rows may be replaced.
    """
    if rows and (span_of(shapes[0]) or len(shapes) > 1):
        raise UsageError(
            "a library that keeps its caches has one shape", "give --context, or several shapes"
        )
    if rows or len(shapes) > 1:
        return shapes, rows, False
    if not span_of(shapes[0]) and (rows := assumed_rows(trials.proto, with_rows(shapes[0], 0))):
        stage("sizes", f"--context {rows}, since the file leaves the rows of its caches open")
        return shapes, rows, True
    if not (found := assumed(trials, shapes[0])):
        return shapes, 0, False
    large, fault = too_large(trials, shapes[0]), one_size(trials, shapes[0], found)
    why = (large, f"other sizes do not fit: {fault}" if fault else "")
    stage("sizes", "; ".join((f"{options(found)}, which the file leaves open", *filter(None, why))))
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
    for at, (proto, graph) in enumerate(zip(protos, cycle(graphs), strict=False)):
        declare_foreign(proto, graph, shapes=at < len(graphs) and graph.context is None)
    return graphs


def _nothing(graph: Graph) -> None:
    """Leave no size open."""


def _sound_graph(proto: ModelProto, open_sizes: Callable[[Graph], None]) -> Graph:
    graph = canonical_graph(proto, open_sizes)
    check_sizes(graph)
    return graph


def _batch(span: Span, shapes: Asked, first: Imported) -> Batch:
    """The batch sizes that a model is asked to take."""
    from .relax.extract import bytes_of_weights, operations

    return Batch.of(span, shapes, operations(first.mod), bytes_of_weights(first.mod))


def _of_batch(
    path: Path, asked: _Sizes, batch: Batch
) -> tuple[tuple[ModelProto, ...], list[Graph]]:
    """The model at the other sizes of a batch, then at the size that tries the parts.

    Graphs are made only for the sizes that there will be code for.
    """
    sizes = list(batch.sizes())
    tried = tried_size(sizes, batch.most)
    bound_to = [with_rows(asked.asked, rows) for rows in (*sizes[1:], *([tried] if tried else []))]
    protos, _ = _bound(Trials(_loaded(path, asked.values)[1]), bound_to, 0)
    count = len(sizes) - 1
    return protos, _sound_graphs(path, bound_to[:count], protos[:count]) if count else []


def _check(imported: Imported, batch: Batch) -> None:
    """ModelError if the rows of a batch are not computed independently."""
    from .relax.rows import check_rows

    (rows,) = {imported.interfaces[0].input_shapes[name][0] for name in batch.inputs}
    check_rows(imported, rows, batch.inputs)


def _tried(shapes: Asked, lengths: Sequence[Range]) -> list[dict[str, tuple[int, ...]]]:
    """The shapes at which ranges are verified, the largest first."""
    ends = [(one.least, one.most, one.step) for one in lengths]
    return [at_sizes(shapes, lengths, sizes) for sizes in tried_together(ends)]


def _loaded(path: Path, values: Values) -> tuple[_Source, ModelProto]:
    """The source of a model, and the model with constants in place of the inputs in `values`."""
    source = load(path)
    with blaming(path):
        proto = with_values(source.proto, values)
        name_sets(proto)
        refuse_early(proto)
    return _Source.of(source), proto


def _bound(
    trials: Trials, input_shapes: Sequence[Mapping[str, tuple[int, ...]]], rows: int
) -> tuple[tuple[Any, ...], list[Opening]]:
    """The model with each of the input shapes.

    With a context, also the model to compile, which leaves open the sizes that its length changes.
    """
    if not rows:
        return tuple(bound(trials, shapes) for shapes in input_shapes), []
    whole = Opened.of(trials.proto, input_shapes[0], rows)
    keep = partial(caches.prepare, context=whole.context)
    return tuple(map(whole.bound, whole.context.samples)), [(whole.opened(), keep)]


def merge(models: list[Prepared]) -> list[Task]:
    """The unique tasks of several models, each with its weight in all of them and in each."""
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
