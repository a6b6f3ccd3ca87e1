"""The machine is recognised from what its kernel says, the same way each time."""

import os
import subprocess
from pathlib import Path

import pytest

from ansor_deploy.errors import UsageError
from ansor_deploy.system.host import detect_host, memory_bytes

V2 = "fpu sse sse2 ssse3 sse4_1 sse4_2 popcnt cx16 lahf_lm"
V3 = f"{V2} abm avx avx2 bmi1 bmi2 f16c fma movbe"
V4 = f"{V3} avx512f avx512bw avx512cd avx512dq avx512vl"


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def x86(root, flags, mhz="3000.000"):
    block = f"processor\t: 0\nmodel name\t: A CPU\ncpu MHz\t\t: {mhz}\nflags\t\t: {flags}\n"
    write(root, {"proc/cpuinfo": block + "\nprocessor\t: 1\nflags\t\t: none\n"})


@pytest.mark.parametrize(
    ("flags", "cpu", "features", "size", "registers"),
    [
        ("fpu sse sse2", "x86-64", [], 16, 16),
        (V2, "x86-64-v2", [], 16, 16),
        (f"{V2} avx avx2", "x86-64-v2", [], 16, 16),
        (V3, "x86-64-v3", [], 32, 16),
        (f"{V3} avx_vnni", "x86-64-v3", ["+avxvnni"], 32, 16),
        (f"{V3} avx512f", "x86-64-v3", [], 32, 16),
        (V4, "x86-64-v4", [], 64, 32),
        (f"{V4} avx512_vnni avx512_bf16", "x86-64-v4", ["+avx512vnni", "+avx512bf16"], 64, 32),
        (f"{V4} amx_tile amx_int8", "x86-64-v4", ["+amx-tile", "+amx-int8"], 64, 32),
        (f"{V4} avx512vbmi avx512_vbmi2", "x86-64-v4", ["+avx512vbmi"], 64, 32),
    ],
)
def test_the_level_of_x86(tmp_path, flags, cpu, features, size, registers):
    x86(tmp_path, flags)
    found = detect_host(tmp_path, "x86_64", {0, 1})
    assert (found["cpu"], found["features"]) == (cpu, features)
    assert (found["vector_bytes"], found["vector_registers"]) == (size, registers)
    assert found["triple"] == "x86_64-unknown-linux-gnu"
    assert found["description"] == "A CPU"
    assert found["peak_gflops"] == pytest.approx(3.0 * 2 * (size / 4) * 2 * 2)


def test_arm(tmp_path):
    write(tmp_path, {"proc/cpuinfo": "processor\t: 0\nFeatures\t: fp asimd asimddp asimdhp"})
    found = detect_host(tmp_path, "aarch64", {0, 1, 2, 3})
    assert (found["triple"], found["cpu"]) == ("aarch64-linux-gnu", "generic")
    assert found["features"] == ["+neon", "+dotprod", "+fullfp16"]
    assert (found["vector_bytes"], found["vector_registers"], found["cores"]) == (16, 32, 4)


def test_another_instruction_set_says_what_to_do(tmp_path):
    write(tmp_path, {"proc/cpuinfo": "processor\t: 0"})
    with pytest.raises(UsageError, match="riscv64") as caught:
        detect_host(tmp_path, "riscv64", {0})
    assert "--target" in caught.value.hint


def test_hardware_threads_of_a_core_count_once(tmp_path):
    x86(tmp_path, V3)
    topology = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    siblings = {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}
    write(tmp_path, {topology.format(n): text for n, text in siblings.items()})
    assert detect_host(tmp_path, "x86_64", {0, 1, 2, 3})["cores"] == 2
    assert detect_host(tmp_path, "x86_64", {0, 2})["cores"] == 1


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 8),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "max 100000"}, 8),
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/cpu.max": "250000 100000"}, 3),
        ({"proc/self/cgroup": "0::/a", "sys/fs/cgroup/a/cpu.max": "5000 100000"}, 1),
        ({"proc/self/cgroup": "0::/a", "sys/fs/cgroup/a/cpu.max": "9900000 100000"}, 8),
        (
            {
                "proc/self/cgroup": "4:memory:/x\n2:cpu,cpuacct:/pod\n0::/",
                "sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us": "200000",
                "sys/fs/cgroup/cpu/pod/cpu.cfs_period_us": "100000",
            },
            2,
        ),
        (
            {
                "proc/self/cgroup": "1:cpu:/",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            8,
        ),
    ],
)
def test_a_quota_limits_the_cores(tmp_path, files, cores):
    x86(tmp_path, V3)
    write(tmp_path, files)
    assert detect_host(tmp_path, "x86_64", set(range(8)))["cores"] == cores


@pytest.mark.parametrize(
    ("files", "granted"),
    [
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/memory.max": "1048576"}, 1 << 20),
        (
            {
                "proc/self/cgroup": "4:memory:/x\n2:cpu:/y",
                "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "2097152",
                "sys/fs/cgroup/cpu/x/memory.limit_in_bytes": "1",
            },
            2 << 20,
        ),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "max"}, None),
        (
            {"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "9223372036854771712"},
            None,
        ),
        ({}, None),
    ],
)
def test_a_group_s_limit_is_all_the_memory_there_is(tmp_path, files, granted):
    write(tmp_path, files)
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert memory_bytes(tmp_path) == (granted or physical)


def test_caches(tmp_path):
    x86(tmp_path, V3)
    caches = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "1280K")]
    for index, (level, kind, size) in enumerate([*caches, ("3", "Unified", "30M")]):
        folder = f"sys/devices/system/cpu/cpu0/cache/index{index}"
        values = {"level": level, "type": kind, "size": size, "coherency_line_size": "64"}
        write(tmp_path, {f"{folder}/{name}": text for name, text in values.items()})
    found = detect_host(tmp_path, "x86_64", {0})
    assert (found["l1_bytes"], found["l2_bytes"]) == (49152, 1310720)
    assert (found["l3_bytes"], found["cache_line_bytes"]) == (31457280, 64)


def test_a_kernel_that_tells_nothing(tmp_path):
    x86(tmp_path, V3, mhz="unknown")
    found = detect_host(tmp_path, "x86_64", {0})
    assert (found["l1_bytes"], found["l3_bytes"]) == (32768, 0)
    assert found["peak_gflops"] > 0


def test_the_greatest_clock_counts_where_it_is_known(tmp_path):
    x86(tmp_path, V3, mhz="800.0")
    write(tmp_path, {"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "4000000"})
    assert detect_host(tmp_path, "x86_64", {0})["peak_gflops"] == pytest.approx(4 * 8 * 4)


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="needs Linux")
def test_this_machine_is_detected_the_same_each_time_and_starts_no_process(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    monkeypatch.setattr(os, "fork", None)
    first = detect_host()
    assert 1 <= first["cores"] <= len(os.sched_getaffinity(0))
    for _ in range(5):
        again = detect_host()
        fixed = again.keys() - {"peak_gflops"}
        assert {key: again[key] for key in fixed} == {key: first[key] for key in fixed}
