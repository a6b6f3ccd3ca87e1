"""What tuning leaves behind: workloads, measurements and records, by the identity of a task."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from ..system.digest import canonical_json, sha256
from ..system.run_times import CALL_SECONDS, impossible, median
from ..target import Target
from .title import title

# The annotation by which a trace names what is done to its program first (`space/rewriting.py`).
REWRITING = "ansor.rewriting"

# No run is faster than on a machine of so many cycles a second, whatever lies in a cache: more than
# any processor has, so that no true time is refused.
_CLOCK = 8e9
# A cycle of a core, for each byte of a vector register: two units multiply and add bytes, or a
# quarter as many numbers of float32: room for a convolution that takes a quarter of the products.
_OPERATIONS = 4
_BYTES = 8  # two loads and two stores; and half of what is counted may be behind a condition
# A cycle of a multiprocessor: its tensor cores on the smallest types, and its shared memory.
_GPU_OPERATIONS, _GPU_BYTES = 1 << 14, 1 << 10

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, order=True)
class TaskKey:
    """Identity of a task on a target. Each field prevents one wrong reuse.

    workload: SHA-256 of the canonical text of the task's program. Prevents a schedule made for
        other shapes, dtypes, constants or computations from being applied.
    target: fingerprint of the target. Prevents code tuned for one instruction set, core count or
        cache from being used on another.

    The board's name, the rule set and the tool's version are provenance and not identity.
    """

    workload: str
    target: str

    def __str__(self) -> str:
        return f"{self.workload[:12]}@{self.target[:8]}"


@dataclass(frozen=True)
class Workload:
    """A task's program as the registry knows it: enough to list it and to find its neighbours.

    key: SHA-256 of `text`. text: canonical, name-free program text. op: the anchor operator
    ("conv2d", "matmul", ...). name: the fused function's readable name. family: the weaker key
    (anchor operator, dtypes, layout; shapes apart). flops: of one run. bytes: read and written
    by one run when nothing is cached.
    """

    key: str
    text: str = field(repr=False)
    op: str
    name: str
    family: str
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    flops: float
    bytes: float

    @property
    def title(self) -> str:
        """A line that distinguishes the task for people, as `registry.title` makes it."""
        return title(self.op, self.name, self.shapes)

    def impossible(self, seconds: Any, target: Target) -> str:
        """Why these are no times of a run of it on a target; "" if they may be.

        Only what the target's fingerprint says counts: its peak and bandwidth are declared for
        estimates, and may be far too low.
        """
        return impossible(seconds, self.least_seconds(target))

    def least_seconds(self, target: Target) -> float:
        """Seconds below which no run of it can be.

        The roofline (Williams et al., 2009) of the fastest machine with the target's cores and
        vectors, and with memory as fast as its first cache.
        """
        if target.gpu is not None:
            units, operations, width = target.gpu.sms, _GPU_OPERATIONS, _GPU_BYTES
        else:
            vector = target.vector_bytes
            units, operations, width = target.cores, vector * _OPERATIONS, vector * _BYTES
        cycles = max(self.flops / operations, self.bytes / width) / units
        return max(CALL_SECONDS, cycles / _CLOCK)


def roofline(flops: float, moved: float, target: Target) -> float:
    """Seconds that one run takes at the target's peak or bandwidth, whichever is longer.

    moved: bytes.
    """
    compute = flops / (target.peak_gflops * 1e9)
    return max(compute, moved / (target.memory_gbs * 1e9), 1e-7)


def forecast(tasks: Mapping[K, tuple[float, float]], measured: Mapping[K, float]) -> dict[K, float]:
    """Seconds of a run of each task, on one basis however much of it was measured.

    What was not counts as its roofline, times what the measured tasks took of theirs; without any
    it is the roofline. tasks: how often each occurs, and its roofline in seconds. measured: seconds
    of some.
    """
    least = sum(weight * limit for key, (weight, limit) in tasks.items() if key in measured)
    taken = sum(weight * measured[key] for key, (weight, _) in tasks.items() if key in measured)
    factor = taken / least if least else 1.0
    return {key: measured.get(key, limit * factor) for key, (_, limit) in tasks.items()}


_LATE = ("derived_by", "clock")  # which earlier versions do not have


@dataclass(frozen=True)
class Provenance:
    """Where a measured program came from: never part of its identity.

    rules: digest of the set of rules that were asked; "" where none were. derived_by: the names of
    the rules of its sketch; none where no rule made it, and in what earlier versions wrote. clock:
    MHz of the processor when it was measured, as its kernel says; 0 where it does not.
    """

    tool: str
    tvm: str
    search: str
    device: str
    seed: int
    created: str  # ISO 8601, UTC
    rules: str = ""
    derived_by: tuple[str, ...] = ()
    clock: int = 0

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Provenance:
        """That of a `to_json` object."""
        return cls(**{**said, "derived_by": tuple(said.get("derived_by", ()))})

    def to_json(self) -> dict[str, Any]:
        """Its fields, as JSON has them. Records' ids rest on it: what came late is never empty."""
        return {name: value for name, value in vars(self).items() if name not in _LATE or value}


@dataclass(frozen=True)
class Measurement:
    """One candidate's outcome: times in seconds, or an error that is data.

    trace: the schedule as canonical JSON text of a TVM trace.
    error: "" or a kind: "build", "link", "load", "run", "timeout", "crash", "wrong-output", or
    "replay" where a record of another TVM was tried that the program does not take.
    features: of the program, as `ansor_deploy.tune.search.features` encodes them; None if unknown.
    """

    key: TaskKey
    trace: str = field(repr=False)
    seconds: tuple[float, ...]
    error: str
    message: str
    provenance: Provenance
    features: bytes | None = field(default=None, repr=False)

    @property
    def latency(self) -> float:
        """Median run time in seconds; infinite for a failed candidate."""
        return median(self.seconds) if self.seconds and not self.error else float("inf")


@dataclass(frozen=True)
class Record:
    """A measured program that a build may use. Immutable; the best of a key is a query.

    proof: how its output was checked: {"oracle", "seed", "max_abs_err", "max_rel_err"}.
    claimed: whether others say so, and it was not measured here; no part of what it says.
    """

    key: TaskKey
    trace: str
    seconds: tuple[float, ...]
    proof: dict[str, Any]
    provenance: Provenance
    claimed: bool = field(default=False, compare=False)

    @property
    def rewrites(self) -> bool:
        """Whether its trace begins with a block replaced by an equal computation."""
        return f'"{REWRITING}"' in self.trace

    @property
    def latency(self) -> float:
        """Median run time in seconds."""
        return median(self.seconds)

    @cached_property
    def id(self) -> str:
        """Content address: equal records have equal ids on every machine."""
        return sha256(canonical_json(self.to_json()))

    def to_json(self) -> dict[str, Any]:
        """Its fields, as JSON has them: what its id is the digest of."""
        said = {name: value for name, value in asdict(self).items() if name != "claimed"}
        return {**said, "provenance": self.provenance.to_json()}

    def __repr__(self) -> str:
        return f"Record({self.id[:12]} {self.key} {self.latency * 1e3:.4g} ms)"


@dataclass(frozen=True)
class Contest:
    """Two records of a task were compared, run by run. loser, winner: their ids.

    created: ISO 8601, UTC. Of two comparisons of the same records the later counts, and neither
    where they are of the same time and ended differently.
    """

    loser: str
    winner: str
    created: str


@dataclass(frozen=True)
class SearchEnd:
    """A task's search came to its end, which an interrupted one did not.

    reason: "limit", "nothing to find", "no improvement", "early stop", "impact", "exhausted" or the
    budget of the run that ended (`tune/budget_end.py`); "locked" or "revalidated" where it ended
    elsewhere, or under another TVM.
    enough_for: budgets of up to so many trials a task have nothing left to do for it.
    rules: digest of the set of rules that were asked; "" where it is not known.
    claimed: whether others say so, and the search was not made here.
    """

    key: TaskKey
    tvm: str
    search: str
    trials: int
    reason: str
    enough_for: int
    created: str  # ISO 8601, UTC
    rules: str = ""
    claimed: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Build:
    """A finished build: what was asked, what the plan found, and what was shipped.

    artifact: path of the library. model: digest of the model file. name: of that file. target:
    fingerprint. asked: effort, budget and flags. hits, near, misses, skipped: tasks by what the
    plan said of them. trials: that the build has spent. tuned_ms, untuned_ms: of one run; None
    where nothing was timed. shipped: "tuned" or "untuned". verification: as in the manifest, {}
    where nothing was verified. digests: SHA-256 of "library", "manifest" and "lock", as far as
    there are such files. manifest: as it lies beside the library.
    """

    artifact: str
    model: str
    target: str
    created: str  # ISO 8601, UTC
    manifest: dict[str, Any] = field(repr=False)
    name: str
    asked: dict[str, Any]
    hits: int
    near: int
    misses: int
    skipped: int
    trials: int
    tuned_ms: float | None
    untuned_ms: float | None
    shipped: str
    verification: dict[str, Any]
    digests: dict[str, str]
    tool: str
    tvm: str
