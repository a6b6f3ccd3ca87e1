"""A manifest, and the kinds of values that all answers are made of.

Each class is a JSON object. A field with a default is not always there; `X | None` may be null.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="SHA-256")]
RecordId = Annotated[str, Meta(description="a record's id, or default for the default schedule")]
Count = Annotated[int, Meta(ge=0)]
Bytes = Annotated[int, Meta(ge=0, description="bytes")]
Ms = Annotated[float, Meta(ge=0, description="milliseconds")]
Seconds = Annotated[float, Meta(ge=0, description="seconds")]
Share = Annotated[float, Meta(ge=0, description="a share of the whole, 0 to 1")]
Ratio = Annotated[float, Meta(ge=0, description="of the first time to the second")]
Interval = Annotated[
    tuple[float, float], Meta(description="where the ratio is, with 99% confidence")
]
Verdict = Literal["faster", "slower", "as fast", "cannot say"]
Shape = list[int]
Time = Annotated[str, Meta(description="a time in ISO 8601, in UTC")]


class Tensor(Struct):
    """An input or an output."""

    name: str
    shape: Shape
    dtype: str


class Interface(Struct):
    """What a library takes and gives in one shape."""

    inputs: list[Tensor]
    outputs: list[Tensor]


class File(Struct):
    """A file that went into a build."""

    file: str
    sha256: Digest


class Output(File):
    """A file that a build wrote."""

    bytes: Bytes


class Model(Struct):
    """The model of a library. digest: of its contents, external data included."""

    name: str
    digest: Digest
    sha256: Digest
    external: list[File]
    input_shapes: dict[str, Shape] | list[dict[str, Shape]]


class Lender(Struct):
    """Whose schedule a task has borrowed: a task, and a target by its fingerprint."""

    key: Digest
    target: Digest


class Node(Struct):
    """A node of the model. name: or its first output's, where it has none."""

    name: str
    op: str


class Place(Struct):
    """Where a model computes a task. shape: of several, the number, from 0."""

    shape: Count
    nodes: list[Node]


class Task(Struct):
    """A task of a library. weight: how often it occurs. impact: its share of the time."""

    key: Digest
    name: str
    title: str
    op: str
    record: RecordId
    weight: Count
    flops: float
    bytes: float
    impact: Share | None
    latency_ms: Ms | None
    fallback: str | None
    rewriting: str | None
    lender: Lender | None
    places: list[Place]


class Kernel(Struct):
    """A symbol of a library, and the task that it computes."""

    symbol: str
    name: str
    task: Digest | None


class OtherPlace(Place):
    """Where a model computes what is no task. kernels: the symbols that compute it."""

    kernels: list[str]


class Gpu(Struct):
    """What a CUDA device allows."""

    arch: str
    max_threads_per_block: Count
    warp_size: Count
    shared_bytes_per_block: Bytes
    registers_per_block: Count
    sms: Count


class Target(Struct):
    """A machine. A frozen build's manifest leaves out its peak and bandwidth."""

    name: str
    kind: Literal["llvm", "cuda"]
    triple: str
    cpu: str
    features: list[str]
    cores: Count
    vector_bytes: Bytes
    vector_registers: Count
    l1_bytes: Bytes
    l2_bytes: Bytes
    l3_bytes: Bytes
    cache_line_bytes: Bytes
    peak_gflops: float | None
    memory_gbs: float | None
    description: str
    gpu: Gpu | None
    fingerprint: Digest


class Memory(Struct):
    """What a library takes."""

    library: Bytes
    weights: Bytes
    workspace: Bytes
    peak: Bytes


class Allowed(Struct):
    """What an element may differ by: rtol of itself, and atol."""

    rtol: float
    atol: float


class Verified(Struct):
    """Whether and where numbers were compared with ONNX Runtime's, and else why not.

    allowed: by output, what the user let it differ by; "" for all others.
    """

    verified: bool
    where: str | None
    reason: str | None
    allowed: dict[str, Allowed]


class NodeErrors(Struct):
    """The largest errors of a tensor that shows what a node computes."""

    name: str
    op: str
    tensor: str
    ok: bool
    max_abs_err: float | None
    max_rel_err: float | None


class Errors(Struct):
    """The largest errors beside the oracle's numbers. max_rel_err: of an output's scale."""

    ok: bool
    max_abs_err: float | None
    max_rel_err: float | None
    oracle: str
    seed: int


class Compared(Errors):
    """`verify --json`. wrong: by output, what is wrong of it. nodes: with --by-node."""

    wrong: dict[str, str]
    nodes: list[NodeErrors] | None


class OtherWork(Struct):
    """What else a machine did in a race. stolen: by the host of a virtual machine.

    load: programs that wanted to run. spread: of a reference loop's time, the 90th percentile over
    the median.
    """

    load: float
    cores: Count
    stolen: Share
    spread: Ratio


class Race(Struct):
    """A library beside another engine, or library, in turns. ratio: of ours to theirs."""

    peer: str
    ours_ms: Ms
    theirs_ms: Ms
    ratio: Ratio
    interval: Interval | None
    turns: Count
    verdict: Verdict
    seen: OtherWork | None


class Speed(Struct):
    """The times of the tuned and the untuned library. records: digest of the records used.

    latency_ms: a run of what is shipped, in the first shape; shapes_ms: in each. tuned_ms and
    untuned_ms: in the first shape; the ratio is for all of them.
    verdict: same where both have the same bytes, null where no race was run.
    """

    latency_ms: Ms
    shapes_ms: list[Ms]
    tuned_ms: Ms
    untuned_ms: Ms
    ratio: Ratio
    interval: Interval | None
    pairs: Count
    beside: Race | None
    records: str
    verdict: Verdict | Literal["same"] | None
    seen: OtherWork | None


class Tuned(Struct):
    """What a build or a tuning run did. no_room: tasks that no device had memory to try.

    kept_default: tasks that were to be tuned and have their default schedule as the best.
    """

    tasks: Count
    hits: Count
    misses: Count
    skipped: Count
    trials: Count
    tune_seconds: Seconds
    latency_ms: Ms | None
    no_room: list[Digest]
    kept_default: Count


class Code(Struct):
    """The code of a library for one of its targets, where it has several."""

    target: Target
    tasks: list[Task]
    kernels: list[Kernel]
    others: list[OtherPlace]
    memory: Memory
    verification: Verified
    lenders: Digest | None


class Manifest(Interface):
    """NAME.json beside NAME.so."""

    format: int
    tool: str
    tvm: str
    linker: str
    identity: Digest
    artifact: Output
    header: Output | None
    model: Model
    precision: Literal["default", "strict"]
    rules: list[File]
    variants: list[Interface] | None
    target: Target
    tasks: list[Task]
    kernels: list[Kernel]
    others: list[OtherPlace]
    shipped: Literal["tuned", "untuned"]
    ran_on: str | None
    verification: Verified
    verify: Errors | None
    speed: Speed | None
    memory: Memory
    tuning: Tuned | None
    lock: Digest | None
    lenders: Digest | None = None
    codes: list[Code] | None = None
