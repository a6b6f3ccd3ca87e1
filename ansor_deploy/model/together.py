"""Names of open axes that say nothing of each other: which axes have one length?

torch.export may give an axis of its own name to each input, also where a graph adds up both inputs.
So sizes are tried: an axis that does not change alone may change with another one, as the places of
the tokens of an image do with the tokens, and beside a text with places of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Thing = TypeVar("Thing")

_PAIRS = 4  # as many names are two pairs at least; fewer are all together


def together(
    names: Sequence[str], fits: Callable[[Sequence[str]], bool]
) -> tuple[list[list[str]], list[str]]:
    """(Groups of names of which each may change without the others, the names that are left).

    fits: whether the graph takes another length for some names than for the others.
    """
    left = [name for name in names if not fits([name])]
    groups = [[name] for name in names if name not in left]
    while len(left) >= _PAIRS:
        first, *others = left
        pair = next((other for other in others if fits([first, other])), None)
        if pair is None:
            break
        groups.append([first, pair])
        left = [name for name in others if name != pair]
    return groups, left


def tied(
    things: Sequence[Thing],
    fits: Callable[[Sequence[Thing]], bool],
    alike: Callable[[Thing, Thing], bool],
) -> list[list[Thing]]:
    """Lengths in groups, those together of which the graph takes no other size alone.

    fits: whether the graph takes other sizes for some lengths than it has. alike: whether two are
    likely to belong together, as the heights of several images do.
    """
    left = [one for one in things if not fits([one])]
    made = [[one] for one in things if one not in left]
    while left:
        first, *others = left
        tried = [[first, other] for other in others]
        tried += [[first, *(one for one in others if alike(first, one))], left]
        found = next((some for some in tried if len(some) > 1 and fits(some)), [first])
        made.append(found)
        left = [one for one in left if one not in found]
    return sorted(made, key=lambda some: things.index(some[0]))
