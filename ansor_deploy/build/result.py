"""What builds and tuning runs did, as commands print it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..artifact.files import manifest_path, output_paths
from ..registry.record import Build
from ..system.digest import file_sha256
from ..tune.ledger import now
from .up_to_date import is_verified

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..request import Outputs, Request
    from ..tune.plan import Plan
    from ..tune.queue import Spent
    from ..tune.scheduler import Round


# What a manifest says of its verification where --no-verify was given.
UNVERIFIED: dict[str, Any] = {
    "verified": False,
    "where": None,
    "reason": "asked for by --no-verify",
    "allowed": {},
}


# Of code that this machine's processor cannot run, beside code that it can.
UNTRIED: dict[str, Any] = {**UNVERIFIED, "reason": "its instructions are not here"}


def verified(where: str | None, request: Request) -> dict[str, Any]:
    """What a manifest says of its verification. where: None in a frozen build's."""
    return {"verified": True, "where": where, "reason": None, "allowed": request.allowed}


# What a manifest has of the two libraries that ran in turns.
_COMPARED = ("tuned_ms", "untuned_ms", "ratio", "interval", "pairs", "verdict", "seen")


@dataclass(frozen=True)
class TuneResult:
    """What a tuning run did. latency_ms: the models' estimated latency under their records.

    latencies_ms: of each model, in their order. rounds: the scheduler's decisions, in order.
    no_room: keys of the tasks that no device had the memory to try. kept_default: how many tasks
    have a record now that is their default schedule.
    """

    tasks: int
    hits: int
    misses: int
    skipped: int
    trials: int
    tune_seconds: float
    latency_ms: float
    latencies_ms: tuple[float, ...] = ()
    rounds: tuple[Round, ...] = ()
    no_room: tuple[str, ...] = ()
    kept_default: int = 0

    @classmethod
    def of_plan(
        cls, plan: Plan, now: Plan, spent: Spent, no_room: Sequence[str] = ()
    ) -> TuneResult:
        """What was spent on a plan. now: the same plan with the latencies of today's records."""
        return cls(
            tasks=len(plan.rows),
            hits=plan.count("hit"),
            misses=plan.count("miss") + plan.count("near"),
            skipped=plan.count("skip"),
            trials=spent.trials,
            tune_seconds=round(spent.seconds, 3),
            latency_ms=now.latency * 1e3,
            latencies_ms=tuple(latency * 1e3 for latency in now.latencies),
            rounds=spent.rounds,
            no_room=tuple(no_room),
        )

    @property
    def gained_nothing(self) -> bool:
        """Whether tasks were tuned, and each of them has its default schedule still."""
        return 0 < self.misses <= self.kept_default

    @classmethod
    def untuned(cls, tasks: int, hits: int, latency_ms: float = math.nan) -> TuneResult:
        """Of a build that tuned nothing."""
        return cls(tasks, hits, 0, tasks - hits, 0, 0.0, latency_ms)

    def to_json(self) -> dict[str, Any]:
        """The figures, as they stand in a manifest and in `build --json`."""
        details = ("latencies_ms", "rounds")
        return {name: value for name, value in self.__dict__.items() if name not in details}

    def with_rounds(self) -> dict[str, Any]:
        """The figures with the scheduler's decisions: the answer of `tune --json`."""
        return {**self.to_json(), "rounds": [decision.to_json() for decision in self.rounds]}


@dataclass(frozen=True)
class BuildResult:
    """What a build made. manifest: as in the file beside the library.

    up_to_date: it had nothing to do, and the figures are those of the build before.
    """

    artifact: Path
    manifest: dict[str, Any]
    tuned: TuneResult
    up_to_date: bool = False

    @classmethod
    def unchanged(cls, artifact: Path, manifest: dict[str, Any]) -> BuildResult:
        """Of outputs that a build would not change."""
        tasks = manifest["tasks"]
        hits = sum(task["record"] != "default" for task in tasks)
        known = manifest["speed"] or manifest["tuning"] or {"latency_ms": math.nan}
        tuned = TuneResult.untuned(len(tasks), hits, known["latency_ms"])
        return cls(artifact, manifest, tuned, up_to_date=True)

    @property
    def verified(self) -> bool:
        """Whether the library's numbers were compared."""
        return is_verified(self.manifest)

    def to_json(self) -> dict[str, Any]:
        """The answer of `build --json`; where nothing was run, what a run would show is null."""
        speed = self.manifest["speed"] or {}
        return {
            "artifact": str(self.artifact),
            "manifest": str(manifest_path(self.artifact)),
            "outputs": [str(path) for path in output_paths(self.artifact, self.manifest)],
            "up_to_date": self.up_to_date,
            **self.tuned.to_json(),
            "shipped": self.manifest["shipped"],
            **{name: speed.get(name) for name in ("latency_ms", *_COMPARED)},
            "verify": self.manifest["verify"],
            "verification": self.manifest["verification"],
            "ran_on": self.manifest["ran_on"],
            "memory": self.manifest["memory"],
        }


def finished_build(
    manifest: dict[str, Any], plan: Plan, trials: int, outputs: Outputs, request: Request
) -> Build:
    """A build for the registry's history. The outputs, and the lock if asked for, are in place."""
    speed = manifest["speed"] or {}
    files = {"manifest": manifest_path(outputs.library), "lock": request.lock}
    digests = {name: file_sha256(path) for name, path in files.items() if path is not None}
    return Build(
        artifact=str(outputs.library),
        model=manifest["model"]["digest"],
        target=request.target.fingerprint,
        created=now(),
        manifest=manifest,
        name=manifest["model"]["name"],
        asked=_asked(outputs, request),
        **plan.counts,
        trials=trials,
        tuned_ms=speed.get("tuned_ms"),
        untuned_ms=speed.get("untuned_ms"),
        shipped=manifest["shipped"],
        verification=manifest["verify"] or {},
        digests={"library": manifest["artifact"]["sha256"], **digests},
        tool=manifest["tool"],
        tvm=manifest["tvm"],
    )


def _asked(outputs: Outputs, request: Request) -> dict[str, Any]:
    """What a request asks for, as JSON; its target and registry are noted elsewhere."""
    return {
        **asdict(request.budget),
        "search": request.search,
        "seed": request.seed,
        "reuse": request.reuse,
        "retune": list(request.retune),
        "rules": [path.name for path in request.rules],
        "devices": list(request.devices),
        "farm": request.farm,
        "input_shapes": request.shapes_json,
        "header": outputs.header,
    }
