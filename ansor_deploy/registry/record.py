"""The results of tuning: workloads, measurements and records, by the identity of a task."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from ..system.digest import canonical_json, sha256
from ..system.run_times import CALL_SECONDS, impossible, median
from ..target import Target
from .title import title

# The annotation by which a trace names the rewriting that comes first (`space/rewriting.py`).
REWRITING = "ansor.rewriting"

# Cycles a second of an imaginary machine that is faster than any: no true time is refused.
_CLOCK = 8e9
# Operations a cycle of a core, for each byte of a vector register: two units multiply and add
# bytes. Of float32 there are a quarter as many, which leaves room for a convolution that needs a
# quarter of the multiplications (Winograd's).
_OPERATIONS = 4
# Bytes a cycle of a core, for each byte of a vector register: two loads and two stores, twice,
# since half of the bytes counted may be behind a condition.
_BYTES = 8
# Operations a cycle of a GPU's multiprocessor: its tensor cores on the smallest types.
_GPU_OPERATIONS = 1 << 14
# Bytes a cycle of a GPU's multiprocessor: its shared memory.
_GPU_BYTES = 1 << 10

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
    ("conv2d", "matmul", ...). name: the fused function's readable name. family: a weaker key, of
    anchor operator, dtypes and layout without shapes. flops: those of one run. bytes: those that
    one run reads and writes when nothing is cached.
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
        """The title of the task for people, made by `registry.title`."""
        return title(self.op, self.name, self.shapes)

    def impossible(self, seconds: Any, target: Target) -> str:
        """Why these cannot be run times on a target; "" if they can be.

        Only fields that the target's fingerprint covers are used: peak and bandwidth are declared
        for estimates, and may be far too low.
        """
        return impossible(seconds, self.least_seconds(target))

    def least_seconds(self, target: Target) -> float:
        """The seconds that every run takes at least.

        It is the roofline (Williams et al., 2009) of the fastest machine with the target's cores
        and vectors, and with memory as fast as its first cache.
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
    """Seconds of a run of each task, comparable whether or not a task was measured.

    A task that was not measured counts as its roofline, times the ratio of the measured tasks' time
    to their rooflines; without measured tasks it counts as its roofline. tasks: how often each task
    occurs, and its roofline in seconds. measured: the seconds of measured tasks.
    """
    least = sum(weight * limit for key, (weight, limit) in tasks.items() if key in measured)
    taken = sum(weight * measured[key] for key, (weight, _) in tasks.items() if key in measured)
    factor = taken / least if least else 1.0
    return {key: measured.get(key, limit * factor) for key, (_, limit) in tasks.items()}


_LATE = ("derived_by", "clock")  # fields that earlier versions did not have


@dataclass(frozen=True)
class Provenance:
    """Where a measured program came from; never part of its identity.

    rules: digest of the set of rules in use; "" where none were. derived_by: the names of the rules
    of its sketch; empty where no rule made it, and in records of earlier versions. clock: MHz of
    the processor when it was measured, as the system's kernel reports; 0 where it does not.
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
        """The provenance of a `to_json` object."""
        return cls(**{**said, "derived_by": tuple(said.get("derived_by", ()))})

    def to_json(self) -> dict[str, Any]:
        """Its fields, for JSON. Records' ids depend on it: late fields are left out where empty."""
        return {name: value for name, value in vars(self).items() if name not in _LATE or value}


@dataclass(frozen=True)
class Measurement:
    """One candidate's outcome: times in seconds, or an error that is data.

    trace: the schedule as canonical JSON text of a TVM trace.
    error: "" or a kind: "build", "link", "load", "run", "timeout", "crash", "wrong-output", or
    "replay" where the record of another TVM was tried and does not replay on the program.
    features: those of the program, encoded by `ansor_deploy.tune.search.features`; None if unknown.
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
    claimed: whether it comes from others and was not measured here; not part of its content.
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
        """Its fields, for JSON: the id is the digest of these."""
        said = {name: value for name, value in asdict(self).items() if name != "claimed"}
        return {**said, "provenance": self.provenance.to_json()}

    def __repr__(self) -> str:
        return f"Record({self.id[:12]} {self.key} {self.latency * 1e3:.4g} ms)"


@dataclass(frozen=True)
class Contest:
    """A comparison of two records of a task, run by run. loser, winner: their ids.

    created: ISO 8601, UTC. Of two comparisons of the same records the later counts; neither counts
    where they have the same time and different winners.
    """

    loser: str
    winner: str
    created: str


@dataclass(frozen=True)
class SearchEnd:
    """The end of a task's search. An interrupted search has none.

    reason: "limit", "nothing to find", "no improvement", "early stop", "impact", "exhausted" or the
    budget of the run that ended (`tune/budget_end.py`); "locked" or "revalidated" where it ended
    elsewhere, or under another TVM.
    enough_for: a budget of up to so many trials a task leaves nothing to do.
    rules: digest of the set of rules in use; "" where it is unknown.
    claimed: whether it comes from others, and the search was not made here.
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

    artifact: path of the library. model: digest of the model file. name: the name of that file.
    target: fingerprint. asked: effort, budget and flags. hits, near, misses, skipped: how many
    tasks the plan gave each status. trials: how many the build spent. tuned_ms, untuned_ms: the
    time of one run; None where nothing was timed. shipped: "tuned" or "untuned". verification: as
    in the manifest, {} where nothing was verified. digests: SHA-256 of "library", "manifest" and
    "lock", for the files that exist. manifest: the content of the file beside the library.
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
