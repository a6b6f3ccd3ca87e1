"""What the commands on the registry print with `--json`."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from ..ship.manifest import Bytes, Count, Digest, Memory, Ms, Race, Shape, Share

Time = Annotated[str, Meta(description="a time in ISO 8601, in UTC")]


class PastBuild(Struct):
    """A build of the registry's history. asked: the words of the command."""

    artifact: str
    model: Digest
    name: str
    target: Digest
    target_name: str | None
    created: Time
    tool: str
    tvm: str
    asked: dict[str, Any]
    hits: Count
    near: Count
    misses: Count
    skipped: Count
    trials: Count
    tuned_ms: Ms | None
    untuned_ms: Ms | None
    shipped: str
    verification: dict[str, Any]
    digests: dict[str, Digest]
    beside: Race | None
    memory: Memory | None


class History(Struct):
    """`history --json`."""

    builds: list[PastBuild]


class BestRecord(Struct):
    """The best record of a task. trials: measurements of the task."""

    id: Digest
    workload: Digest
    title: str
    op: str
    name: str
    shapes: list[Shape]
    dtypes: list[str]
    latency_ms: Ms
    trials: Count
    target: str
    fingerprint: Digest
    tvm: str
    created: Time


class Query(Struct):
    """`registry query --json`."""

    records: list[BestRecord]


class TargetTotals(Struct):
    """What a registry holds for a target."""

    target: str
    fingerprint: Digest
    tasks: Count
    records: Count
    measurements: Count
    trials_saved: float | None
    seconds_saved: float | None


class TvmTotals(Struct):
    """What a registry holds for a version of TVM."""

    tvm: str
    tasks: Count
    records: Count


class ModelTotals(Struct):
    """What a registry knows of a model on a target. covered: tasks with a record."""

    model: str
    digest: Digest
    target: str
    fingerprint: Digest
    layers: Count
    tasks: Count
    shared: Count
    covered: Count
    trials: Count
    trials_saved: float | None
    seconds_saved: float | None


class Stats(Struct):
    """`registry stats --json`. bytes: of the file."""

    workloads: Count
    records: Count
    measurements: Count
    failures: Count
    models: Count
    builds: Count
    trials_saved: float
    bytes: Bytes
    per_target: list[TargetTotals]
    per_tvm: list[TvmTotals]
    per_model: list[ModelTotals]


class CoveredTask(Struct):
    """A task of a model. record: null where there is none, and the latency an estimate."""

    workload: Digest
    op: str
    name: str
    title: str
    shapes: list[Shape]
    dtypes: list[str]
    weight: Count
    record: Digest | None
    latency_ms: Ms
    created: Time | None
    search: str | None
    device: str | None
    share: Share


class Coverage(Struct):
    """What a build for a target could reuse. covered, share: of the tasks, of the time."""

    target: str
    fingerprint: Digest
    tvm: str
    covered: Count
    share: float
    latency_ms: Ms
    tasks: list[CoveredTask]


class Best(Struct):
    """`registry best --json`."""

    model: str
    digest: Digest
    targets: list[Coverage]


class Workload(Struct):
    """A task, whichever models have it."""

    key: Digest
    op: str
    name: str
    family: str
    shapes: list[Shape]
    dtypes: list[str]
    flops: float
    bytes: float
    title: str


class Use(Struct):
    """A model that has a task."""

    model: str
    digest: Digest
    target: str
    weight: Count


class Record(Struct):
    """A record of a task. place: of its target and TVM. seconds: that were measured."""

    id: Digest
    target: str
    fingerprint: Digest
    tvm: str
    place: Count
    lost: bool
    claimed: bool
    latency_ms: Ms
    created: Time
    seconds: list[float]
    proof: dict[str, Any]
    provenance: dict[str, Any]


class Contest(Struct):
    """Two records that ran in turns."""

    winner: Digest
    loser: Digest
    created: Time


class Search(Struct):
    """A search of a task. enough_for: trials a task that it counts as enough for."""

    target: str
    tvm: str
    search: str
    trials: Count
    reason: str
    enough_for: float
    created: Time


class Measurement(Struct):
    """A candidate that was tried. error: "" where it was right; latency_ms is then a number."""

    id: int
    target: str
    error: str
    message: str
    latency_ms: Ms | None
    created: Time | None
    search: str | None
    device: str | None
    tvm: str | None
    seed: int | None


class Show(Struct):
    """`registry show --json`. record: what was asked for, if it was one."""

    workload: Workload
    record: Digest | None
    models: list[Use]
    records: list[Record]
    contests: list[Contest]
    searches: list[Search]
    trials: Count
    failures: Count
    measurements: list[Measurement]


class Lack(Struct):
    """A row that is gone, and how many in which tables refer to it."""

    table: str
    key: str
    waiting: dict[str, Count]


class Salvage(Struct):
    """What was saved of a damaged file, and lost, by table. aside: that file."""

    kept: dict[str, Count]
    lost: dict[str, Count | None]
    aside: str


class Whole(Struct):
    """`registry verify --json`. restored, lacking, models: where --repair had something to do."""

    ok: bool
    repaired: Salvage | None
    restored: dict[str, Count] = {}
    lacking: list[Lack] = []
    models: list[str] = []


class Dropped(Struct):
    """`registry gc --json`: rows that were dropped, or would be."""

    dry_run: bool
    records: Count
    builds: Count


class Vacuumed(Struct):
    """`registry vacuum --json`: bytes of the file."""

    before: Bytes
    after: Bytes


class Given(Struct):
    """`registry export --json` and `push --json`. bundle: "" where all were there already."""

    bundle: str
    records: Count
    left_out: Count


class Taken(Struct):
    """`registry import --json`."""

    new: Count
    known: Count
    contests: Count


class Pulled(Taken):
    """`registry pull --json`. torn, misnamed: bundles that were not whole, or not what they say."""

    bundles: Count
    torn: list[str]
    misnamed: dict[str, str]
