"""The content of a report on a library: from its manifest, the registry and a profile."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from ...devices.machine import rated, runs_here
from ...registry.listing import ModelTotals
from ...registry.store import Registry
from ...ship.manifest import Manifest, Task, read_manifest
from ...ship.quantised import Quantised, facts_of
from ...ship.race.profile_answer import Profile, answer
from ...system.digest import canonical_json
from ...system.json_types import Count, Digest
from ...target import Target
from .curve import Tuning, Weighed, tuning

if TYPE_CHECKING:
    from ...measure.roof import Roof
    from ...runtime import profile as runs

_REUSED = """
    SELECT DISTINCT o.name, k.workload FROM model_tasks AS k JOIN models AS o ON o.digest = k.model
    WHERE k.target = :target AND k.model <> :model AND o.name <> :name
    AND k.workload IN (SELECT value FROM json_each(:keys))
    ORDER BY o.name
"""

_DERIVED = """
    SELECT id, json_extract(provenance, '$.derived_by') AS names FROM records
    WHERE id IN (SELECT value FROM json_each(:records))
"""


@dataclass(frozen=True)
class Facts:
    """The content of a report. manifest: the library's. profile: None where it does not run here.

    roof: the machine's limits for its kernels, where there is a profile. reused: by the names of
    other models, how many of its tasks with a record they have, too. saved: the registry's totals
    for the model on this target, as in `Listing.stats`; None if it has none. quantised: how the
    model was quantised, where the file about it lies beside the library. derived: by a task's key,
    the names of the rules that made its record.
    """

    artifact: Path
    manifest: Manifest
    target: Target
    profile: runs.Profile | None
    roof: Roof | None
    tuning: Tuning | None
    reused: Mapping[str, int]
    saved: ModelTotals | None = None
    quantised: Quantised | None = None
    derived: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def answer(self) -> Page:
        """The same content as JSON shows it."""
        same = ("artifact", "manifest", "tuning", "reused", "saved", "quantised", "derived")
        return Page(**{name: getattr(self, name) for name in same}, profile=self._profile)

    @property
    def _profile(self) -> Profile | None:
        if self.profile is None or self.roof is None:
            return None
        return answer(self.profile, self.roof)


class Page(Struct, frozen=True, kw_only=True):
    """A report as JSON. reused: by the names of other models, the number of tasks shared.

    derived: by a task's key, the names of the rules that made its record.
    """

    artifact: Path
    manifest: Manifest
    profile: Profile | None
    tuning: Tuning | None
    reused: Mapping[str, Count]
    saved: ModelTotals | None
    quantised: Quantised | None
    derived: Mapping[Digest, Sequence[str]]


class Report(Page, frozen=True, kw_only=True):
    """The answer of `report --json`. report: the file that was written."""

    report: Path


def facts(artifact: Path, registry: Path, seconds: float) -> Facts:
    """Collect a library's facts. seconds: how long it runs to be profiled."""
    from ...measure.roof import roof_of
    from ...runtime.model import load
    from ...ship.race.timing import profile

    manifest = read_manifest(artifact)
    target = manifest.target.machine
    profiled = roof = None
    if runs_here(target):
        target, profiled = rated(target), profile(load(artifact), seconds)[0][1]
        roof = roof_of(target, 0, [profiled], here=True)
    with Registry.open(registry, write=False) as store:
        known = tuning(store, manifest.model.name, target.fingerprint, _weighed(manifest))
        reused, saved = _reused(store, manifest), _saved(store, manifest)
        derived = _derived(store, manifest)
    words = (artifact, manifest, target, profiled, roof, known, reused, saved)
    return Facts(*words, facts_of(artifact, manifest.model.sha256), derived)


def _weighed(manifest: Manifest) -> Sequence[Weighed]:
    return [Weighed(one.key, one.title, one.weight, one.latency_ms) for one in manifest.tasks]


def _saved(registry: Registry, manifest: Manifest) -> ModelTotals | None:
    here = manifest.model.digest, manifest.target.fingerprint
    models = registry.stats()["per_model"]
    return next((row for row in models if (row["digest"], row["fingerprint"]) == here), None)


def _derived(registry: Registry, manifest: Manifest) -> dict[str, list[str]]:
    keys = {task.record: task.key for task in manifest.tasks}
    rows = registry.rows(_DERIVED, {"records": canonical_json(sorted(keys))})
    return {keys[row["id"]]: json.loads(row["names"]) for row in rows if row["names"]}


def _reused(registry: Registry, manifest: Manifest) -> dict[str, int]:
    model = manifest.model
    keys = [task.key for task in manifest.tasks if task.record != "default"]
    values = {
        "target": manifest.target.fingerprint,
        "model": model.digest,
        "name": model.name,
        "keys": canonical_json(keys),
    }
    found: dict[str, int] = {}
    for row in registry.rows(_REUSED, values):
        found[row["name"]] = found.get(row["name"], 0) + 1
    return found


def untuned(manifest: Manifest) -> Sequence[Task]:
    """The tasks that have the default schedule."""
    return [task for task in manifest.tasks if task.record == "default"]
