"""The results of builds, as commands print them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import structs

from ..registry.record import Build
from ..system.digest import file_sha256
from ..system.json_types import Count, Ms, Ratio
from ..system.other_work import OtherWork
from ..tune.hits import Origins
from ..tune.ledger import now
from ..tune.result import Tuned, TuneResult
from .manifest import (
    Errors,
    Interval,
    Manifest,
    Memory,
    Race,
    Verdict,
    Verified,
    manifest_path,
    output_paths,
)
from .preset import Preset
from .quantised import Quantised

if TYPE_CHECKING:
    from ..request import Outputs, Request
    from ..tune.plan import Plan


class BuildAnswer(Tuned, frozen=True):
    """`build --json`. up_to_date: there was nothing to do. quantised: set with --precision int8.

    beside: the races with other engines, as in `bench --json`; none where it was not timed.
    """

    artifact: str
    manifest: str
    outputs: list[str]
    up_to_date: bool
    shipped: Literal["tuned", "untuned"]
    tuned_ms: Ms | None
    untuned_ms: Ms | None
    ratio: Ratio | None
    interval: Interval | None
    pairs: Count | None
    verdict: Verdict | Literal["same"] | None
    seen: OtherWork | None
    beside: list[Race]
    verify: Errors | None
    verification: Verified
    ran_on: str | None
    memory: Memory
    preset: Preset | None
    quantised: Quantised | None


# Fields of the answer that come from the race of the tuned and the untuned library.
_COMPARED = (
    *("latency_ms", "tuned_ms", "untuned_ms", "ratio", "interval", "pairs", "verdict", "seen"),
)
_RETOLD = ("shipped", "verify", "verification", "ran_on", "memory", "preset")


@dataclass(frozen=True)
class BuildResult:
    """What a build made. manifest: as in the file beside the library.

    up_to_date: there was nothing to do, and the figures are those of an earlier build. quantised:
    how the model was quantised, if it was.
    """

    artifact: Path
    manifest: Manifest
    tuned: TuneResult
    up_to_date: bool = False
    quantised: Quantised | None = None

    @classmethod
    def unchanged(cls, artifact: Path, manifest: Manifest) -> BuildResult:
        """The result of a build that would change nothing."""
        tasks, known = manifest.tasks, manifest.speed or manifest.tuning
        hits = sum(task.record != "default" for task in tasks)
        taken = math.nan if known is None or known.latency_ms is None else known.latency_ms
        tuned = TuneResult.untuned(len(tasks), hits, taken, _found(manifest, hits))
        return cls(artifact, manifest, tuned, up_to_date=True)

    @property
    def verified(self) -> bool:
        """Whether the library's numbers were compared."""
        return self.manifest.verification.verified

    @property
    def answer(self) -> BuildAnswer:
        """The answer of `build --json`; fields that need a run are null where nothing was run."""
        known = structs.asdict(self.tuned.figures)
        known |= {name: getattr(self.manifest.speed, name, None) for name in _COMPARED}
        known |= {name: getattr(self.manifest, name) for name in _RETOLD}
        race = self.manifest.speed.beside if self.manifest.speed else None
        paths = output_paths(self.artifact, header=self.manifest.header is not None)
        return BuildAnswer(
            artifact=str(self.artifact),
            manifest=str(manifest_path(self.artifact)),
            outputs=[str(path) for path in paths],
            up_to_date=self.up_to_date,
            quantised=self.quantised,
            beside=[race] if race else [],
            **known,
        )


def _found(manifest: Manifest, hits: int) -> Origins | None:
    """Where an unchanged build's records are from: all from the registry; None with a lock."""
    if manifest.lock is not None:
        return None
    part = sum(task.impact or 0.0 for task in manifest.tasks if task.record != "default")
    return Origins(exact=hits, team=0, base=0, near=0, share=part)


def finished_build(
    manifest: Manifest, plan: Plan, trials: int, outputs: Outputs, request: Request
) -> Build:
    """A build for the registry's history. The outputs, and the lock if asked for, are in place."""
    speed, known = manifest.speed, manifest.to_json()
    files = {"manifest": manifest_path(outputs.library), "lock": request.lock}
    digests = {name: file_sha256(path) for name, path in files.items() if path is not None}
    return Build(
        artifact=str(outputs.library),
        model=manifest.model.digest,
        target=request.target.fingerprint,
        created=now(),
        manifest=known,
        name=manifest.model.name,
        asked=_asked(outputs, request),
        **plan.counts,
        trials=trials,
        tuned_ms=speed.tuned_ms if speed else None,
        untuned_ms=speed.untuned_ms if speed else None,
        shipped=manifest.shipped,
        verification=known["verify"] or {},
        digests={"library": manifest.artifact.sha256, **digests},
        tool=manifest.tool,
        tvm=manifest.tvm,
    )


def _asked(outputs: Outputs, request: Request) -> dict[str, Any]:
    """The request as JSON, without its target and registry, which are noted elsewhere."""
    return {
        **asdict(request.budget),
        "search": request.search,
        "seed": request.seed,
        "reuse": request.reuse,
        "retune": list(request.retune),
        "rules": [path.name for path in request.rules],
        "devices": list(request.devices),
        "farm": request.farm,
        "preset": request.preset,
        "input_shapes": request.shapes_json,
        "header": outputs.header,
    }
