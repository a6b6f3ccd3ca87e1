"""Each check of the doctor: what it calls ill, and the remedy that it names."""

import json
import os
import shutil
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from helpers.registry_samples import TARGET, key, record, workload

from ansor_deploy.cli import main
from ansor_deploy.cli.doctor import folded
from ansor_deploy.doctor import host as doctor
from ansor_deploy.project import Project
from ansor_deploy.registry.store import Registry
from ansor_deploy.system import tvm_pairing


@pytest.fixture(autouse=True)
def _no_tvm(monkeypatch):
    """The probe answers without loading TVM."""
    monkeypatch.setattr(tvm_pairing, "PROBE", "pass")


@pytest.fixture
def registry(tmp_path):
    path = tmp_path / "registry.db"
    path.touch()
    return path


def test_all_is_well(registry):
    levels = {check.name: check.level for check in doctor.diagnose(Project(), registry)}
    assert levels["tvm"] == levels["sqlite"] == levels["host"] == levels["registry"] == "ok"


def test_the_command(registry, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.delenv("CXX", raising=False)
    result = CliRunner().invoke(main, ["doctor", "--registry", str(registry)])
    assert result.exit_code == 1
    assert "FAIL  linker: no C++ compiler\n      remedy: apt install g++\n" in result.stdout
    answer = json.loads(CliRunner().invoke(main, ["doctor", "--json"]).stdout)
    assert not answer["ok"]
    assert {"name", "level", "found", "remedy"} == set(answer["checks"][0])


@pytest.mark.parametrize(
    ("probe", "says"),
    [
        ("import os; os.kill(os.getpid(), 11)", "died of signal 11"),
        ("import no_such_module", "No module named 'no_such_module'"),
    ],
)
def test_a_pairing_that_crashes(monkeypatch, probe, says):
    monkeypatch.setattr(tvm_pairing, "PROBE", probe)
    check = doctor.check_tvm()
    assert (check.level, says in check.found) == ("FAIL", True)
    assert "apache-tvm-ffi>=0.1.14.post0,<0.1.15" in check.remedy


def test_missing_packages(monkeypatch):
    monkeypatch.setattr(doctor, "version", lambda name: "" if name == "onnx" else "1")
    assert doctor.check_packages().remedy == "pip install onnx"


def test_a_wrong_cxx(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert doctor.check_compiler().found == "CXX=no-such-compiler is not there"


def test_linkers_for_other_architectures(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    (check,) = doctor.check_cross_linkers()
    name = check.name.removeprefix("linker for ")
    if not find_spec("ziglang"):
        assert (check.level, check.found) == ("warn", "none")
        assert "pip install ziglang" in check.remedy
    linker = tmp_path / f"{name}-linux-gnu-ld"
    linker.touch(mode=0o755)
    assert doctor.check_cross_linkers() == [doctor.Check(check.name, "ok", str(linker))]


@pytest.mark.parametrize(("gib", "level"), [(2, "ok"), (0.5, "warn"), (0.01, "FAIL")])
def test_space(monkeypatch, tmp_path, gib, level):
    usage = SimpleNamespace(free=int(gib * doctor.GIB))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert doctor.check_space("space", tmp_path / "not" / "yet").level == level


def test_registries(monkeypatch, registry):
    new = registry.parent / "new" / "registry.db"
    assert doctor.check_registry(new).found == f"{new} (none yet)"
    # Root may write anywhere, so what the system would say is said for it.
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    assert doctor.check_registry(registry).level == "warn"
    assert doctor.check_registry(new).level == "FAIL"


def test_records_of_another_compiler(tmp_path):
    path = tmp_path / "registry.db"
    tvm = doctor.version("apache-tvm")
    with Registry.open(path) as registry:
        registry.add_target(TARGET)
        registry.add_workloads([workload(0), workload(1)])
        registry.add_batch([], [record(key(0), 1e-3, tvm=old) for old in ("0.26.0", tvm)])
        assert doctor.check_records(path).level == "ok"
        registry.add_batch([], [record(key(1), 1e-3, tvm="0.26.0")])
    check = doctor.check_records(path)
    assert (check.level, check.found[:7]) == ("warn", "1 tasks")
    assert "registry revalidate" in check.remedy
    path.write_bytes(b"no registry" * 99)
    assert doctor.check_records(path).level == "FAIL"


def test_a_long_check_is_folded_between_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    line = "ok    packages: apache-tvm 0.27, numpy 2.4.6, onnx 1.23.2"
    assert folded(line) == ["ok    packages: apache-tvm 0.27, numpy", "      2.4.6, onnx 1.23.2"]
    assert folded("ok    sqlite: 3.40") == ["ok    sqlite: 3.40"]
