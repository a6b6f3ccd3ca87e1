"""Targets: the machines that code is generated for, and what the search may assume about them.

A target is one TOML file, NAME.toml. A project's `targets/` folder is searched before the shipped
one, by the same code. `docs/targets.md` has a table of all fields.
"""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, asdict, dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from msgspec import Meta

from .errors import UsageError, did_you_mean
from .system.digest import canonical_json, sha256
from .system.host import RUN_64_BITS, detect_host, no_runtime
from .system.toml_file import Count, Flag, Size, TomlFile, must_be, read_toml
from .system.words import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HOST = "host"  # the target that stands for this machine
_WITH_CORES = re.compile(r"(.+):([0-9]{1,9})", re.DOTALL)
_MOST_CORES = 1 << 16
_WORD = r"[A-Za-z0-9][A-Za-z0-9._+-]*"


def _text(pattern: str, form: str) -> Meta:
    return Meta(pattern=rf"^(?:{pattern})\Z", description=form)


_POWER = Meta(description="a power of two, in bytes, 4096 at most")
PowerOfTwo = Annotated[Literal[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096], _POWER]
Rate = Annotated[float, Meta(gt=0, lt=1e15, description="a number above 0")]
Feature = Annotated[str, _text(r"[+-][A-Za-z0-9][A-Za-z0-9._-]*", "an LLVM feature")]
_FEATURES = Meta(
    description='a list of LLVM features, each once, such as ["+neon", "-crypto"]',
    extra={"fits": lambda features: len({name[1:] for name in features}) == len(features)},
)


@dataclass(frozen=True)
class GpuLimits:
    """The limits of a CUDA device. Threads and registers are counts, memory is in bytes."""

    arch: Annotated[str, _text(r"sm_[0-9]+[a-z]?", 'a CUDA architecture such as "sm_70"')]
    max_threads_per_block: Count
    warp_size: Count
    shared_bytes_per_block: Count
    registers_per_block: Count
    sms: Count


@dataclass(frozen=True, repr=False)
class Target:
    """A machine as the compiler and the search see it.

    kind: "llvm" or "cuda". triple, cpu, features: LLVM's target triple, mcpu and mattr. cores: how
    many one run may use. Sizes are in bytes and per core, except l3_bytes, which is shared.
    peak_gflops: the float32 FMA peak of all cores. memory_gbs: memory bandwidth in GB/s. These two
    serve for estimates only. gpu: limits of the device, for kind "cuda".
    """

    name: str
    kind: Annotated[Literal["llvm", "cuda"], Meta(description='"llvm" or "cuda"')]
    triple: Annotated[str, _text(_WORD, 'an LLVM triple such as "aarch64-linux-gnu"')]
    cpu: Annotated[str, _text(_WORD, 'an LLVM cpu name such as "cortex-a53"')]
    cores: Count
    vector_bytes: PowerOfTwo
    vector_registers: Count
    l1_bytes: Count
    l2_bytes: Count
    cache_line_bytes: PowerOfTwo
    peak_gflops: Rate
    memory_gbs: Rate
    l3_bytes: Size = 0
    features: Annotated[tuple[Feature, ...], _FEATURES] = ()
    description: Annotated[str, _text(r"[^\x00-\x1f\x7f]*", "one line of text")] = ""
    gpu: GpuLimits | None = None

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the fields that shape the generated code or decide which code is best.

        The name, the description and the two figures of the roofline are left out.
        """
        return sha256(canonical_json(self.identity))

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that the fingerprint is made of."""
        data = {**self.to_json(), "features": sorted(self.features)}  # LLVM ignores their order
        return {name: data[name] for name in IDENTITY}

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal target."""
        return {**asdict(self), "features": list(self.features)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Target:
        """The target of a `to_json` object; KeyError or TypeError if it is not one."""
        gpu = GpuLimits(**data["gpu"]) if data["gpu"] else None
        return cls(**{**data, "features": tuple(data["features"]), "gpu": gpu})

    def __repr__(self) -> str:
        return f"Target({self.name} {self.kind} {self.cpu} x{self.cores} {self.fingerprint[:8]})"


def load_target(name_or_path: str, search_path: Sequence[Path]) -> Target:
    """The target of a NAME, looked up in each folder in turn, or of a path ending in `.toml`.

    NAME:4 is the same target with four cores. UsageError if there is no such target, or if its file
    is not valid.
    """
    path, cores = _locate(name_or_path, search_path), _cores(name_or_path)
    values = _resolve(path, search_path)
    missing = [*_missing(Target, values), *_missing(GpuLimits, values.get("gpu"), "gpu.")]
    if missing:
        hint = f"Add {'it' if len(missing) == 1 else 'them'}, or name a target to start from:"
        raise UsageError(f"lacks {', '.join(missing)}", f'{hint} extends = "NAME".', path)
    if (values["kind"] == "cuda") != bool(values.get("gpu")):
        raise UsageError(
            f'kind = "{values["kind"]}" and the [gpu] table do not fit together',
            'A target of kind "cuda" has a [gpu] table; one of kind "llvm" has none.',
            path,
        )
    found = Target.from_json({"features": [], "gpu": None, **values, "name": path.stem})
    return found if cores is None else with_cores(found, cores)


def with_cores(target: Target, cores: int) -> Target:
    """The same machine with another number of cores, as in NAME:4."""
    name, peak = target.name.rpartition(":")[0] or target.name, target.peak_gflops / target.cores
    known = target.description.removesuffix(f", {count(target.cores, 'core')}")
    described = ", ".join(filter(None, (known, count(cores, "core"))))
    return replace(
        target,
        name=f"{name}:{cores}",
        description=described,
        cores=cores,
        peak_gflops=peak * cores,
    )


@lru_cache(maxsize=2)
def target_of(text: str) -> Target:
    """The target of a JSON text; equal texts give the same object."""
    return Target.from_json(json.loads(text))


def built_for(manifest: Mapping[str, Any]) -> Target:
    """The target in a manifest's JSON; a frozen build's has no figures for estimates."""
    return Target.from_json({name: manifest["target"][name] for name in _FIELDS})


def target_files(name_or_path: str, search_path: Sequence[Path]) -> list[Path]:
    """The files that `load_target` reads: the target's, and those that it extends."""
    return [file.path for file in _chain(_locate(name_or_path, search_path), search_path)]


def differences(one: Target, other: Target) -> list[str]:
    """How two targets' fingerprints differ, in words such as "cores: 8 instead of 2"."""
    here, there = one.identity, other.identity
    names = [name for name in IDENTITY if here[name] != there[name]]
    pairs = [(name, _shown(name, here[name]), _shown(name, there[name])) for name in names]
    return [
        f"{_TITLES.get(name, name)}: {ours} instead of {theirs}" for name, ours, theirs in pairs
    ]


def _shown(name: str, value: Any) -> str:
    if name in ("l1_bytes", "l2_bytes", "l3_bytes"):
        return f"{value >> 10} KiB"
    return f"{' '.join(value) or 'none' if isinstance(value, list) else value}"


def are_alike(one: Target, other: Target) -> bool:
    """Whether targets differ only in cores and cache sizes, so that code of one runs on both."""
    here, there = one.identity, other.identity
    return all(here[name] == there[name] for name in IDENTITY if name not in _SIZES)


def list_targets(search_path: Sequence[Path]) -> dict[str, Path]:
    """Every target's file by its name, sorted; the first folder with a name wins."""
    found = {path.stem: path for folder in reversed(search_path) for path in folder.glob("*.toml")}
    return dict(sorted(found.items()))


def _cores(name: str) -> int | None:
    """The 4 of NAME:4; None where no number is given."""
    match = _WITH_CORES.fullmatch(name)
    if match and not 1 <= int(match[2]) <= _MOST_CORES:
        raise UsageError(f"there is no machine with {match[2]} cores", f"say it as {match[1]}:4")
    return int(match[2]) if match else None


def _locate(name: str, search_path: Sequence[Path]) -> Path:
    name = match[1] if (match := _WITH_CORES.fullmatch(name)) else name
    if name.endswith(".toml"):
        return Path(name)
    known = list_targets(search_path)
    if name in known:
        return known[name]
    hint = f"{did_you_mean(name, known)} A path ending in .toml works too."
    raise UsageError(f"there is no target {name!r}", hint)


def _resolve(path: Path, search_path: Sequence[Path]) -> dict[str, Any]:
    """The file's values, on top of those of the target that it extends."""
    values: dict[str, Any] = {}
    for file in reversed(_chain(path, search_path)):
        own = {key: value for key, value in file.data.items() if key != "extends"}
        if own.pop("detected", False):
            values = _of_vectors(detect_host(), own.get("vector_bytes"))
        if "gpu" in own:
            own["gpu"] = {**(values.get("gpu") or {}), **own["gpu"]}
        values = {**values, **own}
    return values


def _of_vectors(machine: dict[str, Any], size: int | None) -> dict[str, Any]:
    """A machine's values with the peak for vectors of `size` bytes, if these are shorter."""
    part = (size or machine["vector_bytes"]) / machine["vector_bytes"]
    return {**machine, "peak_gflops": round(machine["peak_gflops"] * min(1.0, part), 1)}


def _chain(path: Path, search_path: Sequence[Path]) -> list[TomlFile]:
    """A target's file and those that it extends; the values of each are checked."""
    chain: list[TomlFile] = []
    while True:
        file = read_toml(path)
        above = [one.path for one in chain]
        if path.resolve() in [one.resolve() for one in above]:
            names = " -> ".join(one.stem for one in (*above, path))
            raise file.error(f"extends itself: {names}", "extends", hint="Remove one `extends`.")
        _check(file)
        chain.append(file)
        if not (name := file.data.get("extends")):
            return chain
        path = _base(file, name, search_path)


def _base(file: TomlFile, name: str, search_path: Sequence[Path]) -> Path:
    try:
        found = _locate(name, [file.path.parent, *search_path])
    except UsageError as error:
        raise file.error(error.text, "extends", hint=error.hint) from error
    return file.path.parent / found if name.endswith(".toml") else found


def complaints(values: Mapping[str, Any]) -> list[str]:
    """What is wrong with values of a target's fields; KeyError for other fields."""
    found = {key: must_be(value, FIELDS[key]) for key, value in values.items()}
    if isinstance(gpu := values.get("gpu"), dict):
        found |= {f"gpu.{key}": must_be(value, GPU_FIELDS[key]) for key, value in gpu.items()}
    return [f"{key} must be {form}" for key, form in found.items() if form]


def _check(file: TomlFile) -> None:
    file.check(FIELDS)
    if reason := no_runtime(file.data.get("triple", "")):
        raise file.error(reason, "triple", hint=RUN_64_BITS)
    if "gpu" in file.data:
        file.check(GPU_FIELDS, "gpu")
    if file.data.get("detected") and "extends" in file.data:
        hint = "Keep one of the two."
        raise file.error("`detected` and `extends` exclude each other", "detected", hint=hint)


def _missing(kind: type[Target | GpuLimits], values: Any, prefix: str = "") -> list[str]:
    if values is None:
        return []
    needed = [field.name for field in fields(kind) if field.default is MISSING]
    return [prefix + name for name in needed if name not in values and name != "name"]


GPU_FIELDS = get_type_hints(GpuLimits, include_extras=True)
_SIZES = ("cores", "l1_bytes", "l2_bytes", "l3_bytes")
_TITLES = {
    "vector_bytes": "bytes of a vector",
    "vector_registers": "vector registers",
    "l1_bytes": "L1 cache",
    "l2_bytes": "L2 cache",
    "l3_bytes": "L3 cache",
}
FIELDS = {
    "extends": Annotated[str, _text(r"[^\x00-\x1f\x7f]+", "the name of another target")],
    "detected": Flag,
    **get_type_hints(Target, include_extras=True),
    "gpu": Annotated[dict[str, Any], Meta(description="a table: [gpu]")],
}
del FIELDS["name"]  # the file's name is the target's
_FIELDS = [field.name for field in fields(Target)]
# Fields that are no part of the fingerprint.
_APART = ("name", "description", "peak_gflops", "memory_gbs")
# The fields of the fingerprint, the only ones that are taken from others.
IDENTITY = tuple(field.name for field in fields(Target) if field.name not in _APART)
