"""Detect the machine that this process runs on, without a compiler and in a few milliseconds.

Only properties that stay the same from run to run go into the fingerprint: the instruction set, the
cores that this process may use and the cache sizes. The two figures of the roofline are estimates.
"""

import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import UsageError

# What each x86-64 level of the psABI demands beyond the level below it, as kernel flags.
_X86_64_V2 = frozenset({"cx16", "lahf_lm", "popcnt", "ssse3", "sse4_1", "sse4_2"})
_X86_64_V3 = _X86_64_V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}
_X86_64_V4 = _X86_64_V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}

# Highest level first: (LLVM cpu, flags, vector bytes, vector registers). On v4, LLVM's own
# vectorisation uses 256 bits, but it keeps the schedule's explicit 512-bit vectors whole.
_X86_LEVELS = (
    ("x86-64-v4", _X86_64_V4, 64, 32),
    ("x86-64-v3", _X86_64_V3, 32, 16),
    ("x86-64-v2", _X86_64_V2, 16, 16),
    ("x86-64", frozenset[str](), 16, 16),
)

# The kernel flags that vectors of so many bytes need.
_OF_VECTORS = {32: ("avx2", "fma"), 64: ("avx512f", "avx512bw", "avx512dq", "avx512vl")}

# Extensions beyond the level: the kernel's flag, LLVM's feature, the least vector bytes with it.
_EXTRAS = {
    "x86_64": (
        ("avx_vnni", "+avxvnni", 32),
        ("avx512_vnni", "+avx512vnni", 64),
        ("avx512vbmi", "+avx512vbmi", 64),
        ("avx512_bf16", "+avx512bf16", 64),
        ("amx_tile", "+amx-tile", 64),
        ("amx_int8", "+amx-int8", 64),
    ),
    "aarch64": (("asimddp", "+dotprod", 16), ("asimdhp", "+fullfp16", 16)),
}
_TRIPLES = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-linux-gnu"}

# The architectures for which TVM's runtime is published; only there can a library be loaded.
ARCHES = ("aarch64", "x86_64")
RUN_64_BITS = (
    "run a 64-bit system on the board, if its processor has 64 bits (a Raspberry Pi from 3 on: "
    "target rpi3); one of 32 bits cannot be used"
)

# Linux on x86-64: the system call arch_prctl, its request for a state, and the state of AMX tiles.
_ARCH_PRCTL, _ASK_FOR_STATE, _TILE_DATA = 158, 0x1023, 18

_FMA_UNITS = 2  # of a core, assumed
_GUESSED_MHZ = 2000.0  # used where neither cpufreq nor /proc/cpuinfo says it
_GUESSED_GBS_PER_CORE = 10.0  # memory bandwidth, in GB/s
_GUESSED_GBS = 100.0  # the most for all cores


def detect_host(
    root: Path = Path("/"), machine: str = "", cpus: set[int] | None = None
) -> dict[str, Any]:
    """Every field of a target that describes this machine, as a dictionary.

    root: the folder with /proc and /sys. machine: as `uname -m` prints it. cpus: numbers of the
    logical processors that this process may use. UsageError where the instruction set is unknown.
    """
    allowed = cpus or os.sched_getaffinity(0)
    first = _cpuinfo(root / "proc/cpuinfo")
    isa = _isa(machine or os.uname().machine, first)
    cores = _cores(root, allowed)
    lanes = isa["vector_bytes"] // 4
    gflops = _mhz(root, first) / 1e3 * cores * lanes * 2 * _FMA_UNITS
    return {
        "description": first.get("model name", "this machine"),
        "kind": "llvm",
        **isa,
        "cores": cores,
        **_caches(root / "sys/devices/system/cpu/cpu0/cache"),
        "peak_gflops": round(gflops, 1),
        "memory_gbs": min(_GUESSED_GBS, _GUESSED_GBS_PER_CORE * cores),
    }


def memory_bytes(root: Path = Path("/")) -> int:
    """The bytes of this machine's physical memory, or what a control group grants of it.

    root: where /proc and /sys are.
    """
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [
        _text(folder / name)
        for folder in _groups(root, "memory")
        for name in ("memory.max", "memory.limit_in_bytes")  # of versions 2 and 1
    ]
    return min([machine, *(int(limit) for limit in limits if limit.isdigit())])


def architecture(triple: str = "") -> str:
    """The first part of an LLVM triple in Linux's spelling; of "", this machine's architecture."""
    name = triple.partition("-")[0] or os.uname().machine
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(name.lower(), name)


def no_runtime(triple: str) -> str:
    """Why nothing loads code for an LLVM triple or an architecture, or "" if something does."""
    arch, _, system = triple.partition("-")
    linux = "linux" in system or not system
    # x32 and ilp32 are ABIs with 32-bit pointers on 64-bit processors.
    if architecture(arch) in ARCHES and linux and "32" not in system:
        return ""
    return (
        f"TVM's runtime, which loads a library, is not published for {triple}, "
        f"but for {' and '.join(ARCHES)} with 64-bit Linux only"
    )


def lacks(triple: str, cpu: str, features: Iterable[str]) -> list[str]:
    """What this machine lacks to run such code: instructions or the architecture; [] if nothing.

    A cpu that is no level of the x86-64 psABI is only known to run where it was detected.
    """
    kind, flags = architecture(triple), processor_flags()
    if kind != architecture():
        return [kind]
    known = cpu in ("generic", *(name for name, *_ in _X86_LEVELS))
    needed = sorted({*x86_level(cpu), *kernel_flags(features)} - flags)
    return needed if known else [cpu]


def x86_level(cpu: str) -> frozenset[str]:
    """The kernel flags that a level of the x86-64 psABI demands; none for any other cpu."""
    return next((flags for name, flags, *_ in _X86_LEVELS if name == cpu), frozenset())


def least_flags(triple: str, cpu: str, vector_bytes: int, features: Iterable[str]) -> list[str]:
    """The kernel flags that code for a target needs, as far as they are known without LLVM.

    For a cpu that is no level of the x86-64 psABI, these are the flags of its vector size.
    """
    if architecture(triple) == "aarch64":
        least: Iterable[str] = ("asimd",)
    else:
        least = sorted(x86_level(cpu)) or _OF_VECTORS.get(vector_bytes, ())
    return [*least, *kernel_flags(features)]


def x86_vector_bytes(flags: Iterable[str]) -> int:
    """The bytes of the widest vectors that these flags of an x86 processor allow; 0 if unknown."""
    return max((size for size, least in _OF_VECTORS.items() if {*least} <= {*flags}), default=0)


def processor_flags() -> set[str]:
    """The instruction sets of this machine, as kernel flags."""
    return _flags(architecture(), _cpuinfo(Path("/proc/cpuinfo")))


def ask_for_matrices() -> None:
    """Ask Linux for permission to use AMX tile registers, in this process and its threads.

    A library asks by itself before its code runs (`processor.c`).
    """
    if "amx_tile" in processor_flags():
        import ctypes  # imported here: an unchanged build does not need it

        ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ASK_FOR_STATE, _TILE_DATA)


def kernel_flags(features: Iterable[str]) -> list[str]:
    """The kernel flags of LLVM features, for those that are known here."""
    words = {feature: flag for extras in _EXTRAS.values() for flag, feature, _ in extras}
    return [words[feature] for feature in features if feature in words]


def _cpuinfo(path: Path) -> dict[str, str]:
    """The first processor's block; to read on would make the kernel query every core."""
    block: dict[str, str] = {}
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            key, colon, value = line.partition(":")
            if not colon and block:
                break
            block[key.strip()] = value.strip()
    return block


def _isa(machine: str, cpuinfo: dict[str, str]) -> dict[str, Any]:
    kind = architecture(machine)
    if kind not in _TRIPLES:
        what = f"this machine ({machine}) is no target: {no_runtime(machine)}"
        raise UsageError(what, "Say with --target what to build for, such as rpi3.")
    flags = _flags(kind, cpuinfo)
    cpu, size, registers, features = "generic", 16, 32, ["+neon"]
    if kind == "x86_64":
        cpu, _, size, registers = next(level for level in _X86_LEVELS if level[1] <= flags)
        features = []
    features += [name for flag, name, least in _EXTRAS[kind] if flag in flags and least <= size]
    return {
        "triple": _TRIPLES[kind],
        "cpu": cpu,
        "features": features,
        "vector_bytes": size,
        "vector_registers": registers,
    }


def _flags(kind: str, cpuinfo: dict[str, str]) -> set[str]:
    return set(cpuinfo.get("flags" if kind == "x86_64" else "Features", "").split())


def _cores(root: Path, cpus: set[int]) -> int:
    """The cores that this process may use: siblings count as one, and a quota is rounded up."""
    topology = root / "sys/devices/system/cpu"
    siblings = {_text(topology / f"cpu{n}/topology/thread_siblings_list", str(n)) for n in cpus}
    return max(1, math.ceil(min(len(siblings), _quota(root))))


def _quota(root: Path) -> float:
    """The processor time that control groups grant, in processors; the least over our groups."""
    return min(map(_granted, _groups(root, "cpu")), default=math.inf)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of the control groups that this process is in, as far as that of a controller."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        base = root / "sys/fs/cgroup" / (controller if controllers else "")
        inner = base / group.lstrip("/")
        yield from (path for path in (inner, *inner.parents) if path.is_relative_to(base))


def _granted(folder: Path) -> float:
    files = ("cpu.cfs_quota_us", "cpu.cfs_period_us")  # version 1, where -1 means no limit
    # Version 2 has both numbers in one file; its quota may be "max".
    both = _text(folder / "cpu.max").split() or [_text(folder / name) for name in files]
    return int(both[0]) / int(both[1]) if all(map(str.isdigit, both)) else math.inf


def _caches(folder: Path) -> dict[str, int]:
    """Sizes in bytes of the first core's caches; common ones where the kernel reports none."""
    found = {"l1_bytes": 32768, "l2_bytes": 262144, "l3_bytes": 0, "cache_line_bytes": 64}
    for index in sorted(folder.glob("index[0-9]*")):
        level, size = _text(index / "level"), _text(index / "size")
        if _text(index / "type") in ("Data", "Unified") and level in ("1", "2", "3"):
            found[f"l{level}_bytes"] = _bytes(size) or found[f"l{level}_bytes"]
        if level == "1" and (line := _text(index / "coherency_line_size")).isdigit():
            found["cache_line_bytes"] = int(line) or 64
    return found


def _bytes(size: str) -> int:
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    number = size.rstrip("KMG")
    return int(number) * units.get(size[-1:], 1) if number.isdigit() else 0


def _mhz(root: Path, cpuinfo: dict[str, str]) -> float:
    most = _text(root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    if most.isdigit():
        return int(most) / 1e3
    try:
        return float(cpuinfo["cpu MHz"]) or _GUESSED_MHZ
    except (KeyError, ValueError):
        return _GUESSED_MHZ


def _text(path: Path, otherwise: str = "") -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return otherwise
