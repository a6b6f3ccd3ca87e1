"""The shapes of a model's inputs: bound where they fit, proposed where they lack or do not."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from shlex import quote

from onnx import ModelProto

from ..errors import ModelError
from .batches import Asked, Span
from .caches import found_caches
from .misfit import Trials
from .onnx.bind import OpenInputsError, bind_shapes, declared_shape, model_inputs
from .onnx.file import load
from .onnx.rebatch import FixedSizesError
from .onnx.sizes import open_axes, proposals
from .sides import any_size, is_side

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
_STEPS = (32, 64, 128)  # networks that halve their data often take multiples of these


def bound(trials: Trials, given: Shapes) -> ModelProto:
    """The model with these shapes; ModelError that proposes some for the inputs left open."""
    try:
        return bind_shapes(trials.proto, given)
    except OpenInputsError as error:
        error.hint = _hint(trials, given)
        raise
    except FixedSizesError as error:
        if refusal := _refusal(trials, given):
            error.hint = f"{error.hint}. {refusal.hint}"
        raise


@contextmanager
def explained(path: Path, given: Sequence[Shapes]) -> Iterator[None]:
    """Where a model is refused because of given shapes, say so, and name shapes that it takes.

    The fault shows far behind the inputs and looks like one of the file. The file is read again
    here, so that it need not be kept in memory meanwhile.
    """
    try:
        yield
    except ModelError as error:
        trials = Trials(load(path).proto) if any(given) else None
        for shapes in filter(None, given):
            if trials and (refusal := _refusal(trials, shapes)):
                raise refusal from error
        raise


@contextmanager
def instead(fixed: Shapes) -> Iterator[None]:
    """Where a model is refused with a range of lengths, propose the fixed sizes instead."""
    try:
        yield
    except ModelError as error:
        if fixed:
            error.hint = f"{error.hint.rstrip('.')}; or fix its sizes: {options(fixed)}"
        raise


def _hint(trials: Trials, given: Shapes) -> str:
    """Options to paste: shapes that were found to fit, or else some of the right form."""
    tried = list(proposals(trials.proto, given))
    faults = (trials.misfit({**given, **shapes}) for shapes in tried)
    why = ""
    for shapes, fault in zip(tried, faults, strict=False):
        if not fault:
            return f"Give them: {options(shapes)}{_more(trials, shapes)}{_kept(trials.proto)}"
        why = why or fault
    return (
        f"Give them, with sizes that fit the model. It does not take {options(tried[0])} ({why}): "
        "a graph may hold the sizes that it was exported with"
    )


def _kept(proto: ModelProto) -> str:
    """The advice to let the library keep a decoder's caches; "" if there are none."""
    found = next(found_caches(proto), None)
    return (
        f" (or let the library keep '{found.input}' and its like: --context 1024)" if found else ""
    )


def _more(trials: Trials, shapes: Shapes) -> str:
    """Ranges that may replace proposed sizes; "" where none is known."""
    ranges = filter(None, (_any_batch(trials.proto, shapes), _any_size(trials, shapes)))
    words = ", and for ".join(ranges)
    return f" (for {words})" if words else ""


def _any_batch(proto: ModelProto, shapes: Shapes) -> str:
    """The advice to give a range for an axis that the file calls a batch; "" if none is."""
    declared = [declared_shape(value) for value in model_inputs(proto) if value.name in shapes]
    named = any(shape and "batch" in str(shape[0]).lower() for shape in declared)
    return "any batch up to 8: 1..8 in the place of its 1" if named else ""


def _any_size(trials: Trials, shapes: Shapes) -> str:
    """The advice to give ranges for sides of images where the graph takes half of them; else ""."""
    axes = (axis for axis in open_axes(trials.proto) if axis.value.name in shapes)
    sides = [axis for axis in axes if is_side(axis, shapes)]
    if not (ranged := any_size(trials, {}, shapes, sides)):
        return ""
    places = ((axis.value.name, axis.at) for axis in sides)
    words = {f"{ranged[name][at]} in the place of {shapes[name][at]}" for name, at in places}
    return f"images of any size: {', '.join(sorted(words))}"


def _refusal(trials: Trials, given: Shapes) -> ModelError | None:
    """The error for these shapes if the graph takes others and not these; else None."""
    if not (why := trials.misfit(given)):
        return None
    other = next((one for one in _others(trials.proto, given) if not trials.misfit(one)), None)
    if other is None:
        return None
    changed = {name: shape for name, shape in given.items() if other.get(name) != shape}
    listed = ", ".join(f"'{name}' ({_numbers(shape)})" for name, shape in changed.items())
    better = {name: other.get(name) or _exported(trials.proto, name) for name in changed}
    what = "shape of its input" if len(changed) == 1 else "shapes of its inputs"
    return ModelError(
        f"the model does not take the {what} {listed}: {why}", f"These fit: {options(better)}"
    )


def _others(proto: ModelProto, given: Shapes) -> Iterator[dict[str, Shape]]:
    """Shapes like those given: rounded, then with the usual ones for one input, then for all."""
    for step in _STEPS:
        yield _rounded(proto, given, step)
    for left in (*({name} for name in given), set(given)):
        rest = {name: shape for name, shape in given.items() if name not in left}
        for shapes in proposals(proto, rest):
            yield {**rest, **shapes}


def _rounded(proto: ModelProto, given: Shapes, step: int) -> dict[str, Shape]:
    """The shapes rounded to multiples of `step`, except first axes, fixed sizes and short ones."""
    declared = {value.name: declared_shape(value) or () for value in model_inputs(proto)}
    return {
        name: tuple(
            max(1, round(size / step)) * step if at and size != fixed and size > step // 2 else size
            for at, (size, fixed) in enumerate(zip_longest(shape, declared[name]))
        )
        for name, shape in given.items()
    }


def _exported(proto: ModelProto, name: str) -> Shape:
    """The shape that a model fixes for an input."""
    shape = next(declared_shape(value) for value in model_inputs(proto) if value.name == name)
    return tuple(size for size in shape or () if isinstance(size, int))


def options(shapes: Asked) -> str:
    """Shapes as the user writes them on the command line."""
    pairs = (quote(f"{name}={_numbers(shape)}") for name, shape in shapes.items())
    return " ".join(f"--input-shape {pair}" for pair in pairs)


def _numbers(shape: Sequence[int | Span]) -> str:
    return ",".join(map(str, shape))
