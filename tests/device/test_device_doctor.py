"""Each check of a board: what it calls ill. The probe runs on real boards in test_devices_cli."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ansor_deploy.devices import probe
from ansor_deploy.devices.connection import Ran
from ansor_deploy.doctor import device as doctor
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

ARM = load_target("rpi3", [shipped("targets")])
AVX2 = load_target("intel-cpu-avx2", [shipped("targets")])
AVX512 = load_target("intel-cpu-avx512", [shipped("targets")])
DOTPROD = replace(ARM, features=("+neon", "+dotprod"))
WIDE = ["avx512f", "avx512bw", "avx512dq", "avx512vl"]


@pytest.mark.parametrize(
    ("check", "level", "says"),
    [
        (doctor.check_architecture("aarch64", ARM), "ok", "aarch64"),
        (doctor.check_architecture("arm64", ARM), "ok", "arm64"),
        (doctor.check_architecture("armv7l", ARM), "FAIL", "armv7l"),
        (doctor.check_architecture("", ARM), "FAIL", ""),
        (doctor.check_word_size("64"), "ok", "64 bits"),
        (doctor.check_word_size("32"), "FAIL", "32 bits"),
        (doctor.check_glibc("glibc", "2.28"), "ok", "glibc 2.28"),
        (doctor.check_glibc("glibc", "2.9"), "FAIL", "glibc 2.9"),
        (doctor.check_glibc("", ""), "FAIL", "not glibc"),
        (doctor.check_python("3.10.0", "aarch64"), "ok", "3.10.0"),
        (doctor.check_python("3.9.18", "aarch64"), "FAIL", "3.9.18"),
        (doctor.check_python("3.11.2", "riscv64"), "FAIL", "riscv64"),
        (doctor.check_cores(4, ARM), "ok", "4 online, 4 in rpi3"),
        (doctor.check_cores(3, ARM), "FAIL", "3 online, 4 in rpi3"),
        (doctor.check_features(["asimd"], ARM), "ok", "asimd"),
        (doctor.check_features([], ARM), "FAIL", "lacks asimd"),
        (doctor.check_features(["asimd"], DOTPROD), "FAIL", "lacks asimddp"),
        (doctor.check_features(["avx2", "fma"], AVX2), "ok", "avx2 fma"),
        (doctor.check_features(["sse2"], AVX2), "FAIL", "lacks avx2 fma"),
        (doctor.check_features(WIDE, AVX512), "ok", " ".join(WIDE)),
        (doctor.check_features(["avx2", "fma"], AVX512), "FAIL", "lacks avx512f"),
        (doctor.check_governor(["performance"]), "ok", "performance"),
        (doctor.check_governor([]), "ok", "not adjustable"),
        (doctor.check_governor(["ondemand", "performance"]), "warn", "ondemand"),
        (doctor.check_temperature({"cpu": 45.2, "gpu": 50.0}), "ok", "50 C (gpu)"),
        (doctor.check_temperature({"cpu": 75.0}), "warn", "75 C (cpu)"),
        (doctor.check_temperature({"cpu": 90.0}), "FAIL", "90 C (cpu)"),
        (doctor.check_temperature({}), "ok", "no sensor"),
        (doctor.check_throttling(None), "ok", "not reported"),
        (doctor.check_throttling(0), "ok", "none"),
        (doctor.check_throttling(0x50005), "FAIL", "now: under-voltage, throttled"),
        (doctor.check_throttling(0x20000), "warn", "since it started: frequency capped"),
        (doctor.check_memory(2**30), "ok", "1024 MiB"),
        (doctor.check_memory(2**27), "warn", "128 MiB"),
        (doctor.check_memory(2**20), "FAIL", "1 MiB"),
        (doctor.check_disk(2**31), "ok", "2.0 GiB"),
        (doctor.check_disk(2**29), "warn", "0.5 GiB"),
        (doctor.check_disk(0), "FAIL", "0.0 GiB"),
        (doctor.check_clock(0.0), "ok", "0 s off"),
        (doctor.check_clock(3600.0), "warn", "3600 s off"),
        (doctor.check_load(0.2), "ok", "0.20"),
        (doctor.check_load(3.0), "warn", "3.00"),
        (doctor.check_runtime(["ab" * 32], "pi"), "ok", "abababababab"),
        (doctor.check_runtime([], "pi"), "warn", "not installed"),
    ],
)
def test_checks(check, level, says):
    assert (check.level, says in check.found) == (level, True), check
    assert bool(check.remedy) == (level != "ok")


@pytest.mark.parametrize(
    "change",
    [{}, {"cores": "many"}, {"libc": 5}, {"flags": None}, {"temperatures": [1]}, {"time": None}],
)
def test_a_board_that_answers_nonsense(change):
    """It is not to be believed, and may not crash the doctor either."""
    answer = json.dumps({**probe.facts(), **change} if change else [1, 2])
    (check,) = doctor.examine(Says(answer), ARM, "pi")
    assert (check.name, check.level) == ("probe", "FAIL")


def test_words_that_a_terminal_would_obey():
    checks = doctor.examine(Says(json.dumps({**probe.facts(), "machine": "\033[2J"})), ARM, "pi")
    assert "\033" not in "".join(check.found + check.remedy for check in checks)


class Says:
    """A board whose python3 prints what it likes."""

    def __init__(self, text):
        self.text = text

    def run(self, command, stdin=b"", timeout=30.0):
        return Ran(0, self.text.encode(), "")


def test_what_a_pi_tells(tmp_path, monkeypatch):
    """A Raspberry Pi's files, as its kernel and firmware write them."""
    zone = tmp_path / "class/thermal/thermal_zone0"
    zone.mkdir(parents=True)
    (zone / "temp").write_text("61224\n")
    (zone / "type").write_text("cpu-thermal\n")
    firmware = tmp_path / "get_throttled"
    firmware.write_text("50005\n")
    for cpu in range(4):
        folder = tmp_path / f"devices/system/cpu/cpu{cpu}/cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text("ondemand\n")
    monkeypatch.setattr(probe, "SYSTEM", tmp_path)
    monkeypatch.setattr(probe, "FIRMWARE", firmware)
    found = probe.facts()
    assert found["temperatures"] == {"cpu-thermal": 61.224}
    assert found["throttled"] == 0x50005
    assert found["governors"] == ["ondemand"]


def test_the_probe_needs_nothing_of_ours(tmp_path):
    """As it runs on a board: from its text, isolated, in another folder."""
    script = Path(probe.__file__).read_text()
    command = [sys.executable, "-I", "-S", "-c", script]
    ran = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path)
    assert json.loads(ran.stdout)["cores"] >= 1
