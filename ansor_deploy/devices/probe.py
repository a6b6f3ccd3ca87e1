"""Print the facts of a board, as one JSON object on stdout.

This file is sent to the board's own python3, 3.7 or later: so it uses only the standard library and
no newer syntax. Facts that a board does not report are null or empty; the fields are those of
`facts.Facts`.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

SYSTEM = Path("/sys")
FIRMWARE = SYSTEM / "devices/platform/soc/soc:firmware/get_throttled"
HOME = Path(os.path.expanduser("~"))  # noqa: PTH111 - the folder need not exist
CACHE = HOME / ".cache/ansor-deploy"
AT_HWCAP = 16
HWCAPS = {"asimd": 1, "asimdhp": 10, "asimddp": 20}  # from <asm/hwcap.h>
DIGEST = re.compile("[0-9a-f]{16,64}")


def text(path: Path) -> str:
    """A small file's text, or "" where there is none."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def cpu_flags() -> list[str]:
    """The instruction sets of the first processor, by the kernel's names."""
    for line in text(Path("/proc/cpuinfo")).splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return value.split()
    return []


def cpu_values(wanted: str) -> list[str]:
    """The kernel's values under this key, for every processor in order."""
    lines = text(Path("/proc/cpuinfo")).splitlines()
    pairs = (line.partition(":") for line in lines)
    return [value.strip() for key, _, value in pairs if key.strip() == wanted]


def model() -> str:
    """The board's name in its device tree; else its processor's name, on x86."""
    name = text(Path("/proc/device-tree/model")).strip("\0")
    if not name and platform.machine() == "x86_64":
        name = "".join(cpu_values("model name")[:1])
    return name[:100]


def parts() -> list[str]:
    """The kinds of core of an Arm processor, as implementer:part."""
    kinds = map("{}:{}".format, cpu_values("CPU implementer"), cpu_values("CPU part"))
    return sorted({*kinds})


def hwcaps() -> list[str]:
    """Instruction sets of a 64-bit Arm program: under emulation /proc/cpuinfo is the host's."""
    if platform.machine() != "aarch64":
        return []
    try:
        import ctypes
    except ImportError:  # Debian's python3-minimal
        return []
    getauxval = ctypes.CDLL(None).getauxval
    getauxval.restype = ctypes.c_ulong
    bits = getauxval(AT_HWCAP)
    return [flag for flag, place in HWCAPS.items() if bits >> place & 1]


def governors() -> list[str]:
    """The governors of its cores' clocks, each once; none where clocks are not adjustable."""
    cpus = SYSTEM / "devices/system/cpu"
    found = {text(path) for path in cpus.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return sorted(found - {""})


def temperatures() -> dict[str, float]:
    """Degrees Celsius by sensor."""
    found = {}
    for zone in sorted((SYSTEM / "class/thermal").glob("thermal_zone*")):
        value = text(zone / "temp")
        if value.lstrip("-").isdigit():
            found[text(zone / "type") or zone.name] = int(value) / 1000
    return found


def throttled() -> int | None:
    """The Raspberry Pi's bits about throttling; None on other boards."""
    try:
        return int(text(FIRMWARE) or vcgencmd(), 16)
    except ValueError:
        return None


def vcgencmd() -> str:
    """The same bits from the Raspberry Pi's own tool; "" where there is no such tool."""
    command = ["vcgencmd", "get_throttled"]
    try:
        process = subprocess.run(command, stdout=subprocess.PIPE, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.decode(errors="replace").partition("=")[2]


def gpu() -> dict[str, object] | None:
    """The first GPU of NVIDIA's driver; None where there is no GPU or no driver."""
    try:
        import ctypes

        cuda = ctypes.CDLL("libcuda.so.1")
    except (ImportError, OSError):
        return None
    device, version, name = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(100)
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0):
        return None
    cuda.cuDeviceGetName(name, 100, device)
    cuda.cuDriverGetVersion(ctypes.byref(version))

    def attribute(which: int) -> int:
        value = ctypes.c_int()
        cuda.cuDeviceGetAttribute(ctypes.byref(value), which, device)
        return value.value

    return {
        "name": name.value.decode(errors="replace"),
        "arch": f"sm_{attribute(75)}{attribute(76)}",
        "sms": attribute(16),
        "driver": f"{version.value // 1000}.{version.value % 1000 // 10}",
    }


def memory_free() -> int | None:
    """Bytes of memory that are available to programs."""
    for line in text(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def noexec() -> bool:
    """Whether the home folder is mounted so that nothing under it can be run."""
    return bool(os.statvfs(str(HOME if HOME.exists() else "/")).f_flag & os.ST_NOEXEC)


def facts() -> dict[str, object]:
    """All facts, by their names."""
    return {
        "time": time.time(),
        "machine": platform.machine(),
        "bits": struct.calcsize("P") * 8,
        "libc": platform.libc_ver(),
        "python": platform.python_version(),
        "implementation": sys.implementation.name + getattr(sys, "abiflags", ""),
        "cores": len(os.sched_getaffinity(0)),
        "flags": cpu_flags() + hwcaps(),
        "governors": governors(),
        "temperatures": temperatures(),
        "throttled": throttled(),
        "memory": memory_free(),
        "disk": shutil.disk_usage(str(HOME if HOME.exists() else "/")).free,
        "noexec": noexec(),
        "load": os.getloadavg()[0],
        "cache": str(CACHE),
        "model": model(),
        "parts": parts(),
        "gpu": gpu(),
        "runtimes": sorted(path.name for path in CACHE.glob("*") if DIGEST.fullmatch(path.name)),
    }


if __name__ == "__main__":
    # The newline starts a new line after anything that a login script has printed.
    print("\n" + json.dumps(facts()))  # noqa: T201
