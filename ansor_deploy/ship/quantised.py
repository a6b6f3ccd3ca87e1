"""The facts about a quantised model: NAME.int8.json beside NAME.int8.onnx.

Both lie beside the library that is built from the model, NAME.so. Each class is a JSON object as it
is written, read and published. Anyone may have changed the file, so types are checked when it is
read.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from ..system.atomic_file import write_whole
from ..system.json_types import Bytes, Count, Digest, Ms, Name, Ratio, Share
from ..system.regular_file import read_regular
from .manifest import File, Interval, Output, Verdict, json_bytes

_MOST_BYTES = 16 << 20


class Distance(Struct, frozen=True):
    """How far an output is from the float model's on the samples.

    rms: that of the differences, as a share of the output's rms. max_abs_err: the largest
    difference. same_top: the share of rows whose largest element is the same; null where a row has
    one element.
    """

    output: str
    rms: Share | None
    max_abs_err: float | None
    same_top: Share | None


class Layer(Struct, frozen=True):
    """A layer, and the share of the squared error that goes away if it stays in float32."""

    name: str
    op: str
    share: Share


class Gain(Struct, frozen=True, kw_only=True):
    """What quantising gained: the library timed in turns with one of the float model.

    library: the SHA-256 of the one that was timed. ratio: its time to the other's.
    """

    library: Digest
    int8_ms: Ms
    float_ms: Ms
    ratio: Ratio
    interval: Interval | None
    verdict: Verdict
    int8_bytes: Bytes
    float_bytes: Bytes


class Quantised(Struct, frozen=True, kw_only=True):
    """How a model was quantised.

    identity: a digest of all that decides the result. model: the float model; external: its data
    files. samples: how many there were; compared: on how many of them outputs were compared; kept:
    layers left in float32. gain: null where the library was not timed.
    """

    identity: Digest
    quantiser: Name
    model: File
    external: tuple[Name, ...]
    quantised: Output
    float_bytes: Bytes
    samples: Count
    samples_digest: Digest
    compared: Count
    kept: tuple[str, ...]
    outputs: tuple[Distance, ...]
    layers: tuple[Layer, ...]
    gain: Gain | None = None


def quantised_path(artifact: Path) -> Path:
    """The path of the quantised model that a library is built from."""
    return artifact.with_suffix(".int8.onnx")


def facts_path(artifact: Path) -> Path:
    """The path of the facts about the quantised model of a library."""
    return artifact.with_suffix(".int8.json")


def read_facts(artifact: Path) -> Quantised | None:
    """The facts about the quantised model beside a library; None where there are none."""
    with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode(read_regular(facts_path(artifact), _MOST_BYTES), type=Quantised)
    return None


def facts_of(artifact: Path, model: str) -> Quantised | None:
    """The facts, if they are about the model with this SHA-256, that of the library; else None."""
    found = read_facts(artifact)
    return found if found and found.quantised.sha256 == model else None


def write_facts(artifact: Path, facts: Quantised) -> None:
    """Write the facts beside the library, whole or not at all."""
    write_whole(facts_path(artifact), json_bytes(msgspec.to_builtins(facts)))
