"""The shapes of a model's inputs: bound where they fit, proposed where they lack or do not."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from shlex import quote

from onnx import ModelProto

from ..errors import ModelError
from .assumed import any_size, is_side
from .batches import Asked, Span
from .caches import found_caches
from .misfit import misfit
from .onnx.bind import OpenInputsError, bind_shapes, declared_shape, model_inputs
from .onnx.file import load
from .onnx.rebatch import FixedSizesError
from .onnx.sizes import open_axes, proposals

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
_STEPS = (32, 64, 128)  # whole numbers of which networks take that halve their data often


def bound(proto: ModelProto, given: Shapes) -> ModelProto:
    """The model with these shapes; ModelError that proposes some for the inputs left open."""
    try:
        return bind_shapes(proto, given)
    except OpenInputsError as error:
        error.hint = _hint(proto, given)
        raise
    except FixedSizesError as error:
        if refusal := _refusal(proto, given):
            error.hint = f"{error.hint}. {refusal.hint}"
        raise


@contextmanager
def explained(path: Path, given: Sequence[Shapes]) -> Iterator[None]:
    """Where a model is refused for shapes that were given, say so, and which it would take.

    What goes wrong lies far behind the inputs, and reads like a fault of the file. The file is read
    again, so that nothing of it is kept meanwhile.
    """
    try:
        yield
    except ModelError as error:
        proto = load(path).proto if any(given) else None
        for shapes in filter(None, given):
            if proto and (refusal := _refusal(proto, shapes)):
                raise refusal from error
        raise


@contextmanager
def instead(fixed: Shapes) -> Iterator[None]:
    """Where what has a range of lengths is refused, propose sizes that are fixed. fixed: these."""
    try:
        yield
    except ModelError as error:
        if fixed:
            error.hint = f"{error.hint.rstrip('.')}; or fix its sizes: {options(fixed)}"
        raise


def _hint(proto: ModelProto, given: Shapes) -> str:
    """Options to paste: shapes that were found to fit, or those of the right form."""
    tried = list(proposals(proto, given))
    faults = (misfit(proto, {**given, **shapes}) for shapes in tried)
    why = ""
    for shapes, fault in zip(tried, faults, strict=False):
        if not fault:
            return f"Give them: {options(shapes)}{_more(proto, shapes)}{_kept(proto)}"
        why = why or fault
    return (
        f"Give them, with sizes that fit the model. It does not take {options(tried[0])} ({why}): "
        "a graph may hold the sizes that it was exported with"
    )


def _kept(proto: ModelProto) -> str:
    """What else may become of the caches of a decoder; "" where there are none."""
    found = next(found_caches(proto), None)
    return (
        f" (or let the library keep '{found.input}' and its like: --context 1024)" if found else ""
    )


def _more(proto: ModelProto, shapes: Shapes) -> str:
    """Ranges that may take the place of proposed sizes; "" where none is known."""
    ranges = filter(None, (_any_batch(proto, shapes), _any_size(proto, shapes)))
    words = ", and for ".join(ranges)
    return f" (for {words})" if words else ""


def _any_batch(proto: ModelProto, shapes: Shapes) -> str:
    """What else an axis may be that the file calls a batch; "" where it calls none so."""
    declared = [declared_shape(value) for value in model_inputs(proto) if value.name in shapes]
    named = any(shape and "batch" in str(shape[0]).lower() for shape in declared)
    return "any batch up to 8: 1..8 in the place of its 1" if named else ""


def _any_size(proto: ModelProto, shapes: Shapes) -> str:
    """What else sizes of images may be, where the graph takes half of them; "" where not."""
    axes = (axis for axis in open_axes(proto) if axis.value.name in shapes)
    sides = [axis for axis in axes if is_side(axis, shapes)]
    if not (ranged := any_size(proto, {}, shapes, sides)):
        return ""
    places = ((axis.value.name, axis.at) for axis in sides)
    words = {f"{ranged[name][at]} in the place of {shapes[name][at]}" for name, at in places}
    return f"images of any size: {', '.join(sorted(words))}"


def _refusal(proto: ModelProto, given: Shapes) -> ModelError | None:
    """What to say of shapes, if the graph takes others and not these."""
    if not (why := misfit(proto, given)):
        return None
    other = next((one for one in _others(proto, given) if not misfit(proto, one)), None)
    if other is None:
        return None
    changed = {name: shape for name, shape in given.items() if other.get(name) != shape}
    listed = ", ".join(f"'{name}' ({_numbers(shape)})" for name, shape in changed.items())
    better = {name: other.get(name) or _exported(proto, name) for name in changed}
    what = "shape of its input" if len(changed) == 1 else "shapes of its inputs"
    return ModelError(
        f"the model does not take the {what} {listed}: {why}", f"These fit: {options(better)}"
    )


def _others(proto: ModelProto, given: Shapes) -> Iterator[dict[str, Shape]]:
    """Shapes like those given: of round sizes, then with what is usual for one input, for all."""
    for step in _STEPS:
        yield _rounded(proto, given, step)
    for left in (*({name} for name in given), set(given)):
        rest = {name: shape for name, shape in given.items() if name not in left}
        for shapes in proposals(proto, rest):
            yield {**rest, **shapes}


def _rounded(proto: ModelProto, given: Shapes, step: int) -> dict[str, Shape]:
    """These shapes with whole steps where a user chose, but for the first axis and short ones."""
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
    """Shapes as a user gives them."""
    pairs = (quote(f"{name}={_numbers(shape)}") for name, shape in shapes.items())
    return " ".join(f"--input-shape {pair}" for pair in pairs)


def _numbers(shape: Sequence[int | Span]) -> str:
    return ",".join(map(str, shape))
