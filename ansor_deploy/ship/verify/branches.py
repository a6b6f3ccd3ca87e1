"""Find inputs that choose the branches which ordinary inputs do not, to verify all of a model.

The inputs that decide a condition get other values, one input at a time and then two: numbers near
those that the model may compare them with, Booleans all false or all true, floats of other signs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations, islice, product
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ModelError
from ...model.graph.choices import Choice, choices, deciding
from .session import Session

if TYPE_CHECKING:
    import onnx

Feed = dict[str, np.ndarray]
_Branch = tuple[str, bool]  # the name of an If, and whether this is its then_branch

_MOST = 200  # inputs that are tried at most


@dataclass(frozen=True)
class Drawn:
    """Inputs that choose branches which no inputs before chose. words: the branches in words."""

    words: str
    feed: Feed


def branch_draws(proto: onnx.ModelProto, feed: Feed) -> tuple[list[Drawn], list[str]]:
    """Inputs for the branches that ordinary inputs do not choose; and the branches never chosen.

    feed: the ordinary inputs. ModelError where ONNX Runtime refuses the model of the conditions.
    """
    if not (known := choices(proto)):
        return [], []
    taken = _decider(proto, known)
    left = {(one.name, way) for one in known for way in (True, False)} - taken(feed)
    found = list[Drawn]()
    for drawn in islice(_draws(known, feed), _MOST if left else 0):
        if new := left & taken(drawn):
            found.append(Drawn(" and ".join(map(_words, sorted(new))), drawn))
            left -= new
    return found, [_words(one) for one in sorted(left)]


def _decider(proto: onnx.ModelProto, known: list[Choice]) -> Callable[[Feed], set[_Branch]]:
    """A function that returns the branches which given inputs choose."""
    model, names = deciding(proto, known)
    session = Session(lambda: model, 1, as_written=True)

    def taken(feed: Feed) -> set[_Branch]:
        try:
            made = dict(zip(names, session.run(feed).values(), strict=True))
        except ModelError:  # perhaps an index is out of range
            return set()
        return {(one.name, bool(made[one.condition].all())) for one in known}

    return taken


def _words(branch: _Branch) -> str:
    name, way = branch
    return f"the {'then' if way else 'else'}_branch of '{name}'"


def _draws(known: list[Choice], feed: Feed) -> Iterator[Feed]:
    """Variants of the inputs: for each condition, one of its inputs changed, and then two."""
    for one in known:
        anew = {name: list(_anew(feed[name], one.numbers)) for name in one.inputs}
        for names in chain(*(combinations(anew, count) for count in (1, 2))):
            for values in product(*(anew[name] for name in names)):
                yield {**feed, **dict(zip(names, values, strict=True))}


def _anew(array: np.ndarray, numbers: Iterable[float]) -> Iterator[np.ndarray]:
    """Other values of an input. numbers: those that the model may compare it with."""
    if array.dtype == bool:
        yield from (np.zeros_like(array), np.ones_like(array))
        return
    if array.dtype.kind == "f":
        yield from (-array, np.abs(array), -np.abs(array))
    near = dict.fromkeys(n + more for n in (*numbers, 0.0) for more in (0, 1, -1))
    yield from map(partial(np.full_like, array), filter(partial(_holds, array.dtype), near))


def _holds(kind: np.dtype, number: float) -> bool:
    """Whether a number is in the range of a type."""
    if kind.kind == "f":
        return True
    limits = np.iinfo(kind)
    return limits.min <= number <= limits.max
