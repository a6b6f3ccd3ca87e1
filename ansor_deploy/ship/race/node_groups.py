"""Compare a library's kernels with another engine's, by groups of the model's nodes.

Each fuses nodes in its own way. The groups are the smallest sets of nodes that neither side fuses
with nodes outside the set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...system.json_types import Count, Ms

if TYPE_CHECKING:
    from ...runtime.profile import Profile
    from .peers import EngineNode


@dataclass(frozen=True)
class Group:
    """A group of the model's nodes, by name, with our kernels and the engine's parts.

    kernels: their positions in a run. ours_ms, theirs_ms: the time of all kernels, and of all
    parts. ratio: our time to theirs.
    """

    nodes: tuple[str, ...]
    kernels: tuple[Count, ...]
    parts: tuple[str, ...]
    ours_ms: Ms
    theirs_ms: Ms
    ratio: float | None = field(init=False)

    def __post_init__(self) -> None:
        ratio = self.ours_ms / self.theirs_ms if self.kernels and self.theirs_ms else None
        object.__setattr__(self, "ratio", ratio)


def groups(profile: Profile, parts: Sequence[EngineNode]) -> list[Group]:
    """The groups: first the one without known nodes, if any, then ours in order, then theirs."""
    ours = [tuple(node["name"] for node in one.nodes) for one in profile.kernels]
    sets = _joined([*ours, *(part.nodes for part in parts)])
    found = [_group(profile, parts, ours, nodes) for nodes in [(), *sets]]
    return [one for one in found if one.kernels or one.parts]


def _group(
    profile: Profile,
    parts: Sequence[EngineNode],
    ours: Sequence[tuple[str, ...]],
    nodes: tuple[str, ...],
) -> Group:
    first = nodes[:1]
    known = set(nodes)
    kernels = [at for at, names in enumerate(ours) if names[:1] == first or known & {*names}]
    theirs = [part for part in parts if part.nodes[:1] == first or known & {*part.nodes}]
    return Group(
        nodes,
        tuple(kernels),
        tuple(part.name for part in theirs),
        sum(profile.kernels[at].seconds for at in kernels) * 1e3,
        sum(part.seconds for part in theirs) * 1e3,
    )


def _joined(sets: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The unions of sets that share names, directly or through other sets."""
    of: dict[str, list[str]] = {}
    for names in sets:
        parts = {id(part): part for part in (of.get(name, [name]) for name in names)}
        union = list(dict.fromkeys(name for part in parts.values() for name in part))
        of.update(dict.fromkeys(union, union))
    return [tuple(one) for one in {id(one): one for one in of.values()}.values()]
