"""Which target a board is: its name, its core and their number decide, or nobody knows."""

from dataclasses import replace

import msgspec
import pytest

from ansor_deploy.devices import probe
from ansor_deploy.devices.facts import Facts
from ansor_deploy.doctor.proposal import clear, proposals, summary
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.host import x86_level
from ansor_deploy.target import list_targets, load_target, with_cores

FOLDERS = [shipped("targets")]
# On whichever machine the test runs: no board has so many cores.
TARGETS = [load_target(name, FOLDERS) for name in list_targets(FOLDERS)]
TARGETS = [with_cores(one, 77) if one.name.startswith("x86") else one for one in TARGETS]
PI3 = replace(
    msgspec.convert(probe.facts(), Facts),
    machine="aarch64",
    bits=64,
    cores=4,
    flags=["fp", "asimd", "evtstrm", "crc32"],
    model="Raspberry Pi 3 Model B Plus Rev 1.3",
    parts=("0x41:0xd03",),
    memory=700 << 20,
    governors=["ondemand"],
    temperatures={"cpu-thermal": 48.3},
)
V2, AVX2 = sorted(x86_level("x86-64-v2")), sorted(x86_level("x86-64-v3"))
AVX512 = sorted(x86_level("x86-64-v4"))


@pytest.mark.parametrize(
    ("change", "first", "sure"),
    [
        ({}, "rpi3", True),
        ({"model": ""}, "cortex-a53", True),  # any such board: one fingerprint with rpi3's
        ({"parts": ()}, "rpi3", True),
        ({"model": "", "parts": ()}, "cortex-a53", False),
        ({"model": "", "cores": 8}, "cortex-a53", False),
        ({"cores": 2}, "rpi3:2", True),
        ({"model": "", "cores": 2}, "cortex-a53:2", True),
        ({"parts": ("0x41:0xd08",)}, None, False),
        ({"parts": ("0x41:0xd03", "0x41:0xd08"), "model": ""}, "cortex-a53", False),
        ({"machine": "armv7l", "bits": 32}, None, False),
        ({"machine": "x86_64", "flags": V2, "parts": ()}, "x86-64-v2:4", True),
        ({"machine": "x86_64", "flags": AVX2, "parts": ()}, "x86-64-v3:4", True),
        ({"machine": "x86_64", "flags": AVX512, "parts": (), "cores": 20}, "x86-64-v4:20", True),
        (
            {"machine": "x86_64", "flags": [*AVX512, "avx512_vnni"], "parts": (), "cores": 3},
            "x86-64-v4-vnni:3",
            True,
        ),
    ],
)
def test_what_a_board_is(change, first, sure):
    facts = replace(PI3, **change)
    found = proposals(facts, TARGETS)
    assert (found[0].name if found else None) == first
    assert clear(facts, found) == sure


def test_a_board_in_one_line():
    assert summary(PI3) == (
        "Raspberry Pi 3 Model B Plus Rev 1.3, aarch64, cortex-a53, 4 cores, 700 MiB free, "
        "clock governor ondemand, 48 C"
    )


def test_what_this_machine_says_of_itself_is_accepted():
    facts = msgspec.convert(probe.facts(), Facts)
    assert facts.machine in summary(facts)
    assert facts.model or facts.machine != "x86_64"
