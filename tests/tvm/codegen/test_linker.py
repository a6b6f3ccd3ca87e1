"""Candidates linked on this machine, in the quick way and where that does not do."""

import shutil
import subprocess

from helpers import graphs, programs
from helpers.built import HOST, compiled

from ansor_deploy.codegen import linker
from ansor_deploy.codegen.kernels import candidate as codegen
from ansor_deploy.model.relax.extract import task_of


def names(path, which):
    """Of a library's symbols, with their versions."""
    command = [shutil.which("nm"), "-D", which, path]
    listed = subprocess.run(command, capture_output=True, check=True, text=True)
    return {line.split()[-1] for line in listed.stdout.splitlines()}


def linked(folder, source):
    """What the library of a C function leaves open."""
    (folder / "code.c").write_text(source)
    command = [shutil.which("gcc"), "-O1", "-c", "-fPIC", "code.c"]
    subprocess.run(command, cwd=folder, check=True)
    linker.link_candidate([(folder / "code.o").read_bytes()], folder / "it.so", HOST)
    return names(folder / "it.so", "-u")


def test_what_calls_the_runtime_alone_is_linked_against_it_alone(tmp_path):
    source = "int TVMFFIErrorMoveFromRaised(void*); int f(void) "
    found = linked(tmp_path, source + "{ return TVMFFIErrorMoveFromRaised(0); }")
    assert "TVMFFIErrorMoveFromRaised" in found


def test_a_function_of_which_there_are_versions_is_the_newest(tmp_path):
    found = linked(tmp_path, "float expf(float); float f(float x) { return expf(x); }")
    assert any(name.startswith("expf@GLIBC") for name in found)


def test_clearing_memory_needs_no_version(tmp_path):
    source = "void* memset(void*, int, long); void f(char* x, long n) { memset(x, 0, n); }"
    assert "memset" in linked(tmp_path, source)


def test_what_only_the_compiler_knows_is_linked_by_it(tmp_path):
    found = linked(tmp_path, "__int128 f(__int128 a, __int128 b) { return a / b; }")
    assert any(name.startswith("__divti3@") for name in found)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["code.c", "code.o", "it.so"]


def test_what_packs_alike_is_generated_once(tmp_path):
    task = task_of(programs.conv2d(14, 16, 32)["main"], "conv2d", HOST)
    payload = {"text": task.workload.text, "how": "default", "target": HOST.to_json()}
    codegen._kept_object.cache_clear()
    made = [codegen.build({**payload, "path": str(tmp_path / name)}) for name in ("a", "b")]
    assert made[0]["steps"] == made[1]["steps"]
    assert [step["function"] for step in made[0]["steps"]] == ["pack_0", "compute"]
    assert codegen._kept_object.cache_info()[:2] == (1, 1)
    for one in made:
        assert names(one["path"], "--defined-only") >= {"__tvm_ffi_pack_0", "__tvm_ffi_compute"}


def test_a_library_is_called_by_name_and_says_nothing_to_a_debugger(tmp_path):
    net = graphs.model([graphs.node("Relu", "x", "y")], {"x": (2, 3)})
    compiled(net).export(path := tmp_path / "it.so", HOST)
    command = [shutil.which("readelf"), "-SW", path]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert ".symtab" in said
    assert ".debug" not in said
