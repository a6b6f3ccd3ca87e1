"""Targets are read, checked and pointed at by line; their fingerprint is what code depends on."""

import dataclasses
import json
import re
from pathlib import Path

import pytest

from ansor_deploy import target
from ansor_deploy.errors import UsageError
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import (
    FIELDS,
    GPU_FIELDS,
    GpuLimits,
    Target,
    list_targets,
    load_target,
    with_cores,
)
from ansor_deploy.tune.workspace import check_buildable

SHIPPED = [shipped("targets")]
DOCS = Path(__file__).resolve().parents[2] / "docs" / "targets.md"
NAMES = ["a100", "cortex-a53", "h100", "host", "intel-cpu-avx2", "intel-cpu-avx512", "rpi3", "v100"]
NAMES += ["x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-amx", "x86-64-v4-vnni"]


def refused(tmp_path, text, line=None, name="bad"):
    """The error that a target with this text is refused with, at this line."""
    path = tmp_path / f"{name}.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_target(name, [tmp_path, *SHIPPED])
    if line is not None:
        assert caught.value.message.startswith(f"{path}:{line}: ")
    assert caught.value.hint
    return caught.value


def test_what_is_shipped():
    assert list(list_targets(SHIPPED)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_target_loads_and_survives_json(name):
    target = load_target(name, SHIPPED)
    assert target.name == name
    assert target.description
    assert Target.from_json(json.loads(json.dumps(target.to_json()))) == target
    assert re.fullmatch(r"[0-9a-f]{64}", target.fingerprint)
    assert "\n" not in repr(target)
    assert len(repr(target)) < 100


def test_extending_takes_what_is_not_named():
    rpi3, a53 = load_target("rpi3", SHIPPED), load_target("cortex-a53", SHIPPED)
    assert rpi3.memory_gbs < a53.memory_gbs
    assert (rpi3.triple, rpi3.features, rpi3.cores) == (a53.triple, a53.features, a53.cores)
    assert rpi3.fingerprint == a53.fingerprint


def test_a_gpu_has_its_limits():
    v100 = load_target("v100", SHIPPED)
    assert v100.kind == "cuda"
    assert v100.gpu == GpuLimits("sm_70", 1024, 32, 49152, 65536, 80)
    newer = [load_target(name, SHIPPED).gpu for name in ("a100", "h100")]
    assert [(gpu.arch, gpu.sms) for gpu in newer] == [("sm_80", 108), ("sm_90", 132)]


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Target)])
def test_the_fingerprint_is_of_what_code_depends_on(field):
    target = load_target("v100", SHIPPED)
    old = getattr(target, field)
    if field == "features":
        new = ("+neon",)
    elif field == "gpu":
        new = dataclasses.replace(old, sms=81)
    else:
        new = old + ("x" if isinstance(old, str) else 1)
    changed = dataclasses.replace(target, **{field: new})
    free = field in ("name", "description", "peak_gflops", "memory_gbs")
    assert (changed.fingerprint == target.fingerprint) is free


def test_the_order_of_features_does_not_matter():
    target = load_target("cortex-a53", SHIPPED)
    one = dataclasses.replace(target, features=("+neon", "+crc"))
    other = dataclasses.replace(target, features=("+crc", "+neon"))
    assert one.fingerprint == other.fingerprint


def test_the_fingerprint_stays():
    """A changed fingerprint orphans every record that users have."""
    known = "9d4d5807a85bf06fe41990105641e1ff6643f8656663bfc898baebf7fe312e0a"
    assert load_target("cortex-a53", SHIPPED).fingerprint == known


def test_a_projects_target_comes_before_the_shipped(tmp_path):
    (tmp_path / "rpi3.toml").write_text('extends = "cortex-a53"\ncores = 2\n')
    assert load_target("rpi3", [tmp_path, *SHIPPED]).cores == 2
    assert list_targets([tmp_path, *SHIPPED])["rpi3"] == tmp_path / "rpi3.toml"


def test_a_path_works_where_a_name_does(tmp_path):
    (tmp_path / "base.toml").write_text('extends = "v100"\n[gpu]\nsms = 40\n')
    path = tmp_path / "mine.toml"
    path.write_text('extends = "base.toml"\nl2_bytes = 1024\n')
    target = load_target(str(path), SHIPPED)
    assert (target.name, target.l2_bytes) == ("mine", 1024)
    assert (target.gpu.sms, target.gpu.arch) == (40, "sm_70")


def test_the_host_is_detected_and_single_fields_overridden(tmp_path):
    (tmp_path / "mine.toml").write_text("detected = true\ncores = 77\n")
    host, mine = load_target("host", SHIPPED), load_target("mine", [tmp_path])
    assert mine.cores == 77
    assert mine.cpu == host.cpu
    assert load_target("host", SHIPPED).fingerprint == host.fingerprint


def test_a_level_is_the_same_target_on_all_machines_but_for_cores_which_may_be_named(monkeypatch):
    other = {**target.detect_host(), "cores": 6, "l2_bytes": 1 << 19, "features": ["+avx512vnni"]}
    here = load_target("x86-64-v3:4", SHIPPED)
    monkeypatch.setattr(target, "detect_host", lambda: other)
    there, all_cores = load_target("x86-64-v3:4", SHIPPED), load_target("x86-64-v3", SHIPPED)
    assert there.fingerprint == here.fingerprint
    assert (there.name, there.cores, all_cores.cores) == ("x86-64-v3:4", 4, 6)
    assert there.description == "x86-64-v3: AVX2 and FMA, 4 cores"
    assert with_cores(there, 1).description == "x86-64-v3: AVX2 and FMA, 1 core"
    assert there.peak_gflops * 6 == pytest.approx(all_cores.peak_gflops * 4)
    assert load_target(str(SHIPPED[0] / "rpi3.toml:2"), SHIPPED).cores == 2
    with pytest.raises(UsageError, match="no machine with 0 cores"):
        load_target("x86-64-v3:0", SHIPPED)


def test_an_unknown_target_suggests_a_close_one():
    with pytest.raises(UsageError) as caught:
        load_target("cortex-a35", SHIPPED)
    assert "cortex-a35" in caught.value.message
    assert "Did you mean 'cortex-a53'?" in caught.value.hint
    assert all(name in caught.value.hint for name in NAMES)


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match=r"none\.toml: cannot be read: No such file"):
        load_target(str(tmp_path / "none.toml"), SHIPPED)


def test_an_unknown_field_names_the_allowed(tmp_path):
    error = refused(tmp_path, 'extends = "rpi3"\n\ncorse = 4\n', 3)
    assert "unknown field 'corse'" in error.message
    assert "cores" in error.hint


def test_an_unknown_field_of_the_gpu(tmp_path):
    error = refused(tmp_path, 'extends = "v100"\n[gpu]\nsms = 80\ncores = 4\n', 4)
    assert "unknown field 'cores' in [gpu]" in error.message
    assert "warp_size" in error.hint


@pytest.mark.parametrize(
    "line",
    [
        "cores = 0",
        "cores = -4",
        "cores = true",
        "cores = 4.0",
        'cores = "4"',
        "cores = 99999999999999999999999",
        "l3_bytes = -1",
        "vector_bytes = 24",
        "cache_line_bytes = 0",
        "peak_gflops = 0",
        "peak_gflops = inf",
        "memory_gbs = nan",
        "memory_gbs = true",
        'cpu = "cortex-a53\\n-oProxyCommand=x"',
        'cpu = ""',
        'cpu = "-mcpu"',
        'triple = "aarch64 linux"',
        'kind = "opencl"',
        'description = "two\\nlines"',
        'features = "+neon"',
        'features = ["neon"]',
        'features = ["+neon", "-neon"]',
        'features = ["+neon,+evil"]',
        "features = [1]",
        "gpu = 4",
        'detected = "yes"',
        'extends = ""',
    ],
)
def test_a_bad_value_is_refused_with_its_line(tmp_path, line):
    key = line.split(" = ", maxsplit=1)[0]
    base = "" if key == "extends" else 'extends = "rpi3"\n'
    error = refused(tmp_path, f"# a board\n{base}\n{line}\n", 3 if key == "extends" else 4)
    assert f"{key} must be " in error.message


@pytest.mark.parametrize("line", ['arch = "70"', "sms = 0", "warp_size = 32.5"])
@pytest.mark.parametrize("inline", [True, False])
def test_a_bad_value_of_the_gpu_is_refused_with_its_line(tmp_path, line, inline):
    table = f"gpu = {{ {line} }}\n" if inline else f"[gpu]\n# limits\n{line}\n"
    refused(tmp_path, f'extends = "v100"\n{table}', 2 if inline else 4)


@pytest.mark.parametrize(
    "triple",
    [
        *("armv7-linux-gnueabihf", "arm-linux-gnueabihf", "i686-linux-gnu", "riscv64-linux-gnu"),
        *("aarch64-linux-gnu_ilp32", "x86_64-linux-gnux32", "arm64-apple-darwin"),
    ],
)
def test_what_no_runtime_loads_is_no_target(tmp_path, triple):
    error = refused(tmp_path, f'extends = "rpi3"\n\ntriple = "{triple}"\n', 3)
    assert f"not published for {triple}" in error.message
    assert "64-bit system" in error.hint
    older = dataclasses.replace(load_target("rpi3", SHIPPED), triple=triple)
    with pytest.raises(UsageError, match="not published"):
        check_buildable(older)


@pytest.mark.parametrize("triple", ["arm64-unknown-linux-gnu", "amd64-linux-gnu", "x86_64-linux"])
def test_other_names_of_what_is_served(tmp_path, triple):
    (tmp_path / "mine.toml").write_text(f'extends = "rpi3"\ntriple = "{triple}"\n')
    assert load_target("mine", [tmp_path, *SHIPPED]).triple == triple


def test_a_dotted_key_is_found(tmp_path):
    refused(tmp_path, 'extends = "v100"\n\ngpu.sms = -1\n', 3)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("cores = 4\ncpu = cortex\n", 2),
        ("cores = 1\ncores = 2\n", 2),
        ("x = [1,\n\n", 3),
        (f"cores = {'9' * 5000}\n", 2),
    ],
)
def test_text_that_is_not_toml(tmp_path, text, line):
    assert "not valid TOML" in refused(tmp_path, text, line).message


def test_bytes_that_are_not_text(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        load_target(str(path), SHIPPED)


def test_what_is_missing_is_named(tmp_path):
    error = refused(tmp_path, 'kind = "llvm"\ntriple = "aarch64-linux-gnu"\n')
    assert "lacks cpu, cores, vector_bytes" in error.message
    assert "extends" in error.hint


def test_a_limit_of_the_gpu_that_is_missing_is_named(tmp_path):
    error = refused(tmp_path, 'extends = "cortex-a53"\nkind = "cuda"\ngpu.arch = "sm_70"\n')
    assert "gpu.warp_size" in error.message


def test_kind_and_gpu_belong_together(tmp_path):
    assert "[gpu]" in refused(tmp_path, 'extends = "rpi3"\nkind = "cuda"\n').message
    assert "[gpu]" in refused(tmp_path, 'extends = "v100"\nkind = "llvm"\n').message


def test_extending_in_a_circle(tmp_path):
    (tmp_path / "a.toml").write_text('extends = "bad"\n')
    error = refused(tmp_path, '# me\nextends = "a"\n')
    assert "bad -> a -> bad" in error.message
    refused(tmp_path, 'extends = "bad"\n', 1)


def test_extending_what_is_not_there(tmp_path):
    error = refused(tmp_path, '\nextends = "rpi4"\n', 2)
    assert "Did you mean 'rpi3'?" in error.hint


def test_detected_and_extends_exclude_each_other(tmp_path):
    refused(tmp_path, 'extends = "rpi3"\ndetected = true\n', 2)


def test_every_field_is_documented():
    fields = {field.name for field in dataclasses.fields(Target)} - {"name"}
    assert set(FIELDS) == fields | {"extends", "detected"}
    assert set(GPU_FIELDS) == {field.name for field in dataclasses.fields(GpuLimits)}
    tables = DOCS.read_text()
    commented = "".join(path.read_text() for path in list_targets(SHIPPED).values())
    for name in {*FIELDS, *GPU_FIELDS}:
        assert f"\n| `{name}` |" in tables
        assert re.search(rf"^#.*\n(?:\w.*\n)*(\[{name}\]|{name} =)", commented, re.MULTILINE), name
