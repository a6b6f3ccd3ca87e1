"""Make the files that run a library without Python, for one architecture, in a folder.

    lib/libtvm_ffi.so, lib/libtvm_runtime.so   TVM's, from this machine or from wheels
    lib/libansor_deploy.so                     the C API
    run                                        a program that runs a library on files

They find each other wherever the folder is. The last two are compiled here, and contain nothing of
this machine: the same compiler gives the same bytes.
"""

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from ..errors import AnsorError, DeviceError
from ..system.host import architecture
from ..system.machine_fault import errno_in, fault
from .wheels import runtime_libraries

C_API = Path(__file__).parents[1] / "ship" / "integrations" / "c"
PROGRAM = "run"
_HERE = ("cc", "gcc", "clang")
_SECONDS = 60.0
_OPTIONS = ("-O2", "-Wl,--build-id=none")
# TVM's libraries need a C++ library on the machine that runs them, which this one may lack.
_ELSEWHERE = "-Wl,--allow-shlib-undefined"


def c_runtime(arch: str, folder: Path, wheels: Path, *, program: bool = True) -> None:
    """Write the files. wheels: the folder that `fetch_runtime` filled. program: with `run`.

    AnsorError where there is no C compiler for the architecture, DeviceError where there are no
    wheels.
    """
    compiler, lib = c_compiler(arch), folder / "lib"
    lib.mkdir()
    if arch == architecture():
        _installed_libraries(lib)
    elif not runtime_libraries(arch, wheels, lib):
        hint = "fetch them: ansor-deploy devices install NAME, for a board of that kind"
        raise DeviceError(f"{wheels} has no wheels of TVM's runtime for {arch}", hint)
    api = ["-fPIC", "-shared", "-Wl,-soname,libansor_deploy.so", "-Wl,-rpath,$ORIGIN"]
    api += [f"-I{_tvm_ffi() / 'include'}", str(C_API / "ansor_deploy.c"), "-Llib"]
    api += ["-ltvm_runtime", "-ltvm_ffi", "-o", "lib/libansor_deploy.so"]
    _compile([compiler, *_OPTIONS, *api], folder)
    if program:
        run = ["-Wl,-rpath,$ORIGIN/lib", _ELSEWHERE, str(C_API / "ansor_deploy_run.c"), "-Llib"]
        _compile([compiler, *_OPTIONS, *run, "-lansor_deploy", "-o", PROGRAM], folder)


def c_compiler(arch: str) -> str:
    """The C compiler for an architecture; AnsorError, with the remedy, where there is none."""
    names = _HERE if arch == architecture() else (f"{arch}-linux-gnu-gcc",)
    for name in names:
        if found := shutil.which(name):
            return found
    packages = f"gcc-{arch.replace('_', '-')}-linux-gnu libc6-dev-{_debian(arch)}-cross"
    raise AnsorError(
        f"no C compiler for {arch}: {' or '.join(names)} is not on the PATH",
        f"install one (Debian: apt-get install {'gcc' if names is _HERE else packages})",
    )


def _debian(arch: str) -> str:
    return {"aarch64": "arm64", "x86_64": "amd64"}.get(arch, arch)


def _installed_libraries(folder: Path) -> None:
    """Copy the libraries of this machine's packages, which are not imported."""
    from ..runtime.native import library

    for path in (library(), _tvm_ffi() / "lib" / "libtvm_ffi.so"):
        shutil.copyfile(path, folder / path.name)


def _tvm_ffi() -> Path:
    spec = find_spec("tvm_ffi")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        return Path(place)
    hint = "run: pip install 'apache-tvm==0.27.0.post1'"
    raise AnsorError("the package tvm_ffi is not installed for this Python", hint)


def _compile(command: list[str], folder: Path) -> None:
    """Run a compiler in a folder; AnsorError with its first error where it refuses.

    Its temporary files lie there, too, and go with the folder: one that is killed leaves them.
    """
    env = {**os.environ, "TMPDIR": str(folder.absolute())}
    try:
        subprocess.run(
            command,
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            check=True,
            timeout=_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        if (number := errno_in(error.stderr)) is not None:
            raise fault(number, folder) from error
        lines = [line for line in error.stderr.splitlines() if "error" in line]
        why = lines[0] if lines else f"status {error.returncode}"
        hint = "are the headers of its C library installed (Debian: libc6-dev)?"
        what = f"{Path(command[0]).name} cannot compile the C API: {why}"
        raise AnsorError(what, hint) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AnsorError(f"{command[0]} cannot be run: {error}", "install it again") from error
