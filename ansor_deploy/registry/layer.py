"""Which layers lie below a registry; an unchanged build asks that, so this loads nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ..project import Project

Tier = Literal["base", "team"]


@dataclass(frozen=True)
class Layer:
    """A source of records. where: path of a bundle or of a folder of bundles, or its URL.

    trust: file of public keys, one of which must have signed each bundle; None if none need be
    signed. tier: "base" for the one shipped with the tool.
    """

    where: str
    trust: Path | None = None
    tier: Tier = "team"


def layers_of(project: Project, seed: Path) -> tuple[Layer, ...]:
    """The layers below a project's registry, the lowest first.

    seed: folder of shipped bundles, each named after its content.
    """
    shipped = [Layer(str(seed), tier="base")] if any(seed.glob("*.jsonl")) else []
    return (*shipped, *([Layer(project.team, project.trust)] if project.team else []))
