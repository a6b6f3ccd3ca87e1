"""Names of open axes that say nothing of each other: which axes have one length?

torch.export may give an axis of its own name to each input, also where a graph adds up both inputs.
So sizes are tried: an axis that does not change alone may change with another one, as the places of
the tokens of an image do with the tokens, and beside a text with places of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
