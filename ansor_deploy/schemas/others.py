"""What the commands on rules and devices print with `--json`, and the rarer ways to tune."""

from typing import Any

from msgspec import Struct

from ..ship.manifest import Count, Digest, Ms, Shape, Tuned
from .registry import Time


class Pack(Struct):
    """What a pack has for its machine to measure."""

    folder: str
    tasks: Count
    candidates: Count


class Packed(Tuned, frozen=True):
    """`tune --pack --json`."""

    pack: Pack


class Job(Struct):
    """A model on a target, tuned by a worker of a farm. tuned: the figures of `tune`."""

    model: str
    target: str
    state: str
    worker: str
    device: str
    begun: Count
    trials: Count
    total: Count
    latency_ms: Ms | None
    records: Count
    tuned: dict[str, Any]
    error: str
    hint: str
    exit_code: int


class Jobs(Struct):
    """`tune --farm --json`."""

    jobs: list[Job]


class Retried(Struct):
    """A record of another version of TVM that was tried. error: "" where it is right."""

    record: Digest
    tvm: str
    error: str
    message: str
    latency_ms: Ms | None


class Retrial(Struct):
    """What became of a task's records of other versions. best: what builds use from now on."""

    name: str
    key: Digest
    tried: list[Retried]
    right: Count
    best: Digest | None
    latency_ms: Ms | None


class Retrials(Struct):
    """`registry revalidate --json`."""

    tried: Count
    right: Count
    tasks: list[Retrial]


class Quarantine(Struct):
    """Why a device takes no work for now."""

    reason: str
    since: Time


class Device(Struct):
    """A board or machine that was added. host_keys: fingerprints of those that are pinned."""

    name: str
    url: str
    target: str
    identity: str
    jump: str
    host_keys: list[str]
    quarantine: Quarantine | None


class Devices(Struct):
    """`devices list --json`."""

    devices: list[Device]


class Rule(Struct):
    """A rule. origin: shipped, the project's, or of the command line."""

    name: str
    kinds: list[str]
    summary: str
    origin: str
    path: str
    digest: Digest


class Rules(Struct):
    """`rules list --json`, in the order in which they are asked. digest: of them all."""

    rules: list[Rule]
    digest: Digest


class Step(Struct):
    """What a rule did to a block."""

    block: str
    rule: str


class Choice(Struct):
    """A choice of a program. of: options, or a tile's extent; default: an option, or factors."""

    kind: str
    block: str
    of: Any
    default: Any


class Sketch(Struct):
    """A sketch, about how many programs it has, and the choices of the default one."""

    steps: list[Step]
    programs: Count
    choices: list[Choice]
    error: str


class Verdict(Struct):
    """What a rule said of a block."""

    rule: str
    text: str


class Block(Struct):
    """A block of a program, by the extents of its axes."""

    block: str
    spatial: list[int]
    reduced: list[int]
    verdicts: list[Verdict]


class Explained(Struct):
    """What the rules made of a task. apart: why what reads its results is not fused with it."""

    index: Count
    name: str
    op: str
    weight: Count
    shapes: list[Shape]
    dtypes: list[str]
    sketches: list[Sketch]
    blocks: list[Block]
    misfits: list[str]
    faults: list[str]
    apart: list[str]


class Explain(Struct):
    """`rules explain --json`."""

    model: str
    target: str
    rules: list[str]
    tasks: list[Explained]


class Script(Struct):
    """`registry show --script --json`: a record's program as TVMScript."""

    record: Digest
    script: str


class Completion(Struct):
    """`completion --json`."""

    shell: str
    script: str
