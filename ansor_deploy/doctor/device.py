"""Checks of a device to measure on; each says what it found and what to do about it."""

import platform
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

from ..devices.channel import SshConnection
from ..devices.connection import Connection, Ran
from ..devices.facts import (
    GIVE_SHELL,
    MOUNT_EXEC,
    OLDEST_GLIBC,
    Facts,
    GpuFacts,
    facts_of,
    last_line,
    numbers,
    refused_by_shell,
    run_probe,
)
from ..devices.strain import STEADY, throttles
from ..devices.wheels import pinned
from ..errors import DeviceError
from ..system.host import RUN_64_BITS, architecture, least_flags, no_runtime
from ..system.untrusted import Refused, brief
from ..target import GpuLimits, Target
from .host import GIB, Check, Level, judged

MIB = 2**20
_HOT = 70.0  # degrees Celsius above which the check warns; a Raspberry Pi slows down from 80
_TOO_HOT = 82.0  # degrees Celsius above which the check fails
_SKEW_SECONDS = 60.0  # largest difference of the clocks without a warning
# The commands for a board without python3: its architecture and its word size.
_SHELL = "uname -m; getconf LONG_BIT 2>/dev/null || echo '?'"


def diagnose(
    target: Target, connect: Callable[[], SshConnection], extra: Iterable[Check] = ()
) -> Iterator[Check]:
    """All checks, the basic ones first. extra: further checks, made if none has failed before."""
    try:
        connection = connect()
    except DeviceError as error:
        yield Check("reachable", "FAIL", error.message, error.hint)
        return
    failed = False
    with closing(connection):
        yield Check("reachable", "ok", f"as {connection.name}")
        key = connection.host_key
        yield Check("host key", "ok", f"{key.fingerprint} ({key.kind})")
        try:
            for check in examine(connection, target, connection.name):
                failed = failed or check.level == "FAIL"
                yield check
        except DeviceError as error:
            failed = True
            yield Check("connection", "FAIL", error.message, error.hint)
    if not failed:
        yield from extra


def examine(connection: Connection, target: Target, name: str) -> Iterator[Check]:
    """The checks of a device that can be reached. name: the user's name for it."""
    before = time.time()
    ran = run_probe(connection)
    after = time.time()
    try:
        facts = facts_of(ran)
    except Refused as refused:
        if ran.status == 0:
            found = f"its answer makes no sense: {refused}"
            yield Check("probe", "FAIL", found, "log in and see its python3")
        else:
            yield from without_python(connection, target, ran)
        return
    # Python's start and the transfer lie between `before` and `after`, in unknown parts.
    skew = max(before - facts.time, facts.time - after, 0.0)
    yield from judge(facts, target, name, skew)


def judge(facts: Facts, target: Target, name: str, skew: float) -> list[Check]:
    """The checks of the facts from `probe.py`. skew: seconds between its clock and ours."""
    return [
        check_architecture(facts.machine, target),
        check_word_size(str(facts.bits)),
        check_glibc(*facts.libc),
        check_python(facts.python, facts.machine),
        check_cores(facts.cores, target),
        check_features(facts.flags, target),
        *([check_gpu(facts.gpu, target.gpu)] if target.gpu else []),
        check_governor(facts.governors),
        check_temperature(facts.temperatures),
        check_throttling(facts.throttled),
        check_memory(facts.memory),
        check_disk(facts.disk),
        *([Check("home", "FAIL", "mounted noexec", MOUNT_EXEC)] if facts.noexec else []),
        check_clock(skew),
        check_load(facts.load),
        check_runtime(facts.runtimes, name),
    ]


def without_python(connection: Connection, target: Target, ran: Ran) -> Iterator[Check]:
    """The checks that a shell can make where python3 is missing, or failed as `ran` shows."""
    if refused := refused_by_shell(connection):
        yield Check("shell", "FAIL", f"its account runs no commands: {refused}", GIVE_SHELL)
        return
    said = connection.run(_SHELL).stdout.decode(errors="replace").split()
    machine, bits = [brief(word, 64) for word in (*said, "?", "?")[:2]]
    yield check_architecture(machine, target)
    yield check_word_size(bits)
    broken = f"python3 does not work: {last_line(ran)}"
    found = "there is no python3" if ran.status == 127 else broken
    yield Check("python", "FAIL", found, "on the board: apt-get install python3")


def check_architecture(machine: str, target: Target) -> Check:
    """Check that the processor has the target's architecture."""
    wanted = architecture(target.triple)
    other = f"add the device with a target for {machine}; {target.name} is for {wanted}"
    remedy = RUN_64_BITS if no_runtime(machine) else other
    return judged("architecture", architecture(machine or "?") == wanted, machine, remedy)


def check_word_size(bits: str) -> Check:
    """Check that the system's programs are 64-bit: a 64-bit kernel can also run a 32-bit system."""
    remedy = "install a 64-bit system: its kernel alone does not suffice"
    return judged("word size", bits in ("64", "?"), f"{bits} bits", remedy)


def check_glibc(name: str, version: str) -> Check:
    """Check that the C library can load code that was linked on other machines."""
    oldest = ".".join(map(str, OLDEST_GLIBC))
    if name != "glibc":
        remedy = f"use a system with glibc {oldest} or later, such as Debian"
        return Check("libc", "FAIL", name or "not glibc", remedy)
    remedy = f"upgrade the system: glibc {oldest} or later"
    return judged("libc", numbers(version) >= OLDEST_GLIBC, f"glibc {version}", remedy)


def check_python(version: str, machine: str) -> Check:
    """Check that a runtime exists for its Python: in wheels, or in this machine's packages."""
    short = version.split(".")[:2]
    try:
        if (short, machine) != ([*platform.python_version_tuple()[:2]], platform.machine()):
            pinned(machine, ".".join(short))
    except DeviceError as error:
        return Check("python", "FAIL", f"{version}: {error.message}", error.hint)
    return Check("python", "ok", version)


def check_cores(cores: int, target: Target) -> Check:
    """Check that a run can use as many cores as the target has."""
    found = f"{cores} online, {target.cores} in {target.name}"
    remedy = f"bring the others online, or use a target with cores = {cores}"
    return judged("cores", cores >= target.cores, found, remedy)


def check_features(flags: list[str], target: Target) -> Check:
    """Check that the processor has the instructions that the target's code uses."""
    words = (target.triple, target.cpu, target.vector_bytes, target.features)
    needed = least_flags(*words)
    missing = [flag for flag in needed if flag not in flags]
    found = f"lacks {' '.join(missing)}" if missing else " ".join(needed) or "none needed"
    remedy = f"use another target: code for {target.name} would die of an illegal instruction"
    return judged("cpu features", not missing, found, remedy)


def check_gpu(gpu: GpuFacts | None, wanted: GpuLimits) -> Check:
    """Check that there is a GPU like the target's, with a driver."""
    if gpu is None:
        remedy = "install NVIDIA's driver: libcuda.so.1 must find a GPU"
        return Check("GPU", "FAIL", "none, or no driver for it", remedy)
    remedy = f'use a target with arch = "{gpu.arch}" and sms = {gpu.sms}'
    return judged("GPU", gpu.fits(wanted), f"{gpu}, driver for CUDA {gpu.driver}", remedy)


def check_governor(governors: list[str]) -> Check:
    """Check that the clock does not vary with the load."""
    found = ", ".join(governors) or "none: the clock is not adjustable"
    remedy = (
        "for steady times, as root on the board: "
        "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
    )
    return judged("clock governor", governors in ([], [STEADY]), found, remedy, "warn")


def check_temperature(temperatures: dict[str, float]) -> Check:
    """Check that the hottest sensor is well below the point where processors slow down."""
    if not temperatures:
        return Check("temperature", "ok", "no sensor")
    name, degrees = max(temperatures.items(), key=lambda item: item[1])
    level: Level = "warn" if degrees < _TOO_HOT else "FAIL"
    remedy = "let it cool down; give it a heat sink or a fan"
    return judged("temperature", degrees < _HOT, f"{degrees:.0f} C ({name})", remedy, level)


def check_throttling(bits: int | None) -> Check:
    """Check that the firmware does not throttle the processor."""
    if not bits:
        return Check("throttling", "ok", "not reported" if bits is None else "none")
    now, before = throttles(bits), throttles(bits >> 16)
    found = f"now: {', '.join(now)}" if now else f"since it started: {', '.join(before)}"
    remedy = "use a stronger power supply and a shorter cable; cool the board; restart it"
    return Check("throttling", "FAIL" if now else "warn", found, remedy)


def check_memory(free: int | None) -> Check:
    """Check that there is memory for weights and inputs."""
    if free is None:
        return Check("memory", "ok", "not reported")
    level: Level = "warn" if free >= 96 * MIB else "FAIL"
    remedy = "end other programs, the desktop first"
    return judged("memory", free >= 256 * MIB, f"{free / MIB:.0f} MiB free", remedy, level)


def check_disk(free: int) -> Check:
    """Check that the home folder has space for the runtime and for candidates."""
    level: Level = "warn" if free >= 256 * MIB else "FAIL"
    remedy = "free at least 1 GiB under the home folder"
    return judged("disk", free >= GIB, f"{free / GIB:.1f} GiB free at home", remedy, level)


def check_clock(skew: float) -> Check:
    """Check that the clock agrees with ours. skew: seconds."""
    remedy = "on the board: timedatectl set-ntp true"
    return judged("clock", skew <= _SKEW_SECONDS, f"{skew:.0f} s off", remedy, "warn")


def check_load(load: float) -> Check:
    """Check that no other program computes there. load: the average over a minute."""
    remedy = "end other programs: times would not be steady"
    return judged("load", load < 1, f"{load:.2f}", remedy, "warn")


def check_runtime(runtimes: list[str], name: str) -> Check:
    """Check that some runtime is installed; its version is checked when it is used."""
    found = ", ".join(digest[:12] for digest in runtimes) or "not installed"
    return judged("runtime", bool(runtimes), found, f"ansor-deploy devices install {name}", "warn")
