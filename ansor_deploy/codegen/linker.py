"""Link object files to one shared library: the only module that knows linkers.

Code for this machine's architecture is linked with this machine's tools: a candidate by `ld` alone,
in milliseconds, an artifact by the C++ compiler.

Code for another architecture is linked against nothing. The functions that a kernel calls (of libm,
memset, of tvm-ffi) come with libtvm_ffi.so, without which no such library can be loaded. So no file
of the other system is needed here. The library names no other library, and its symbols carry no
versions: the loader takes the oldest version of each, which every glibc since 2.17 has, however
new this machine's is. All symbols are bound when the library is loaded (`-z now`), so that a symbol
that the board lacks is an error at that time, and does not end the process in the first call.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import AnsorError, LinkError
from ..system.host import architecture
from ..system.machine_fault import about, errno_in, fault, killed
from ..target import Target

COMPILERS = ("g++", "clang++", "c++", "gcc", "clang", "cc")
# Nearly every candidate links against this library alone.
_RUNTIME = "libtvm_ffi"
# Symbols of the C library that may stay unresolved then, since it has one version of them only.
_ONE_VERSION = {"memset"}
_UNRESOLVED = re.compile(r"undefined references? to `([^']+)'")
# The libraries that a candidate may call, as they are mapped in a process that has imported TVM.
_CALLED = re.compile(r"lib(m|c|tvm_ffi)(-[\d.]+)?\.so(\.\d+)?")
# Messages of a linker, or of a compiler's linking step, that a signal ended.
_KILLED = re.compile(r"(terminated with|due to) signal|\[?Killed\b")
# Debug information has only positions in TVM's intermediate code, and is as large as the kernels.
_LEFT_OUT = ("--build-id=none", "--strip-debug")
_MESSAGE_CHARS = 500
_EXPORTED = ("lib0.o", "devc.o")  # object files that TVM's export writes


def is_foreign(target: Target) -> bool:
    """Whether the target's code is for another architecture than this machine's."""
    return architecture(target.triple) != architecture()


def check(target: Target) -> None:
    """AnsorError, with the remedy, where nothing here can link for the target."""
    if is_foreign(target):
        cross_linker(target.triple)
    elif not any(shutil.which(name) for name in ("ld", *COMPILERS)):
        raise AnsorError(
            "no linker to build candidates with: neither ld nor a C++ compiler is on the PATH",
            "install one (Debian: apt-get install g++), then repeat the command",
        )


def cross_linker(triple: str) -> list[str]:
    """The command that links for another architecture; AnsorError where there is none."""
    gnu = f"{architecture(triple)}-linux-gnu-ld"
    for name in (gnu, "ld.lld"):
        if found := shutil.which(name):
            return [found]
    if (zig := find_spec("ziglang")) and zig.origin:
        return [str(Path(zig.origin).with_name("zig")), "ld.lld"]
    package = f"gcc-{architecture(triple).replace('_', '-')}-linux-gnu"
    raise AnsorError(
        f"no linker for {triple}: neither {gnu} nor ld.lld is on the PATH, and there is no ziglang",
        f"install one (Debian: apt-get install {package}; anywhere: pip install ziglang)",
    )


def link_candidate(objects: Sequence[bytes], path: Path, target: Target) -> None:
    """Write object files beside `path`, and link them as fast as possible.

    LinkError where the linker refuses; AnsorError where there is none; MachineError where the
    machine is at fault.
    """
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        names = [f"{folder}/{at}.o" for at in range(len(objects))]
        with about(path.parent):
            for name, code in zip(names, objects, strict=True):
                Path(name).write_bytes(code)
        if is_foreign(target) or not _linked_here(path, names):
            _link(_command(target), path, names)


def linker_name(target: Target) -> str:
    """The linker for the target, with its version, in its own words; "" if there is none."""
    command = cross_linker(target.triple) if is_foreign(target) else [_compiler()]
    with suppress(OSError):  # a missing compiler is reported where one is needed
        said = subprocess.run([*command, "--version"], capture_output=True, check=False, text=True)
        return said.stdout.partition("\n")[0]
    return ""


def export(library: Any, objects: Mapping[str, bytes], path: Path, target: Target) -> None:
    """Link a compiled module or executable, and all that it imports, to a library at `path`.

    objects: further object files by name, which are linked in the order of their names. Until they
    are linked, they lie in a folder beside the library. LinkError; MachineError, OSError.
    """
    link = _exporter(target)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        names = [f"{folder}/{name}.o" for name in sorted(objects)]
        with about(path.parent):
            for name in sorted(objects):
                Path(folder, f"{name}.o").write_bytes(objects[name])
            with _written_to_memory(folder):
                library.export_library(str(path), workspace_dir=folder, fcompile=link, addons=names)


@contextmanager
def _written_to_memory(folder: str) -> Iterator[None]:
    """Make the files that LLVM writes there during TVM's export links to memory.

    LLVM would end the process where a disk is full.
    """
    with ExitStack() as files:
        for name in _EXPORTED:
            file = files.enter_context(os.fdopen(os.memfd_create("object"), "wb"))
            Path(folder, name).symlink_to(f"/proc/{os.getpid()}/fd/{file.fileno()}")
        yield


def _linked_here(path: Path, objects: Sequence[str]) -> bool:
    """Link by `ld` alone; False where that fails, as for a symbol of the compiler's library."""
    ld, called = shutil.which("ld"), _mapped()
    if not ld or not called:
        return False
    command = [ld, "-shared", "--no-undefined", "-o", str(path), *objects]
    return _linked_quickly(command, called) or _ran([*command, *called], path).returncode == 0


def _linked_quickly(command: Sequence[str], called: Sequence[str]) -> bool:
    """Link against the runtime alone, which is enough for nearly every candidate.

    Reading the C library takes three times as long as all the rest. A symbol of which it has one
    version only can stay unresolved: the loader finds it.
    """
    runtime = [library for library in called if _RUNTIME in library]
    path = Path(command[command.index("-o") + 1])
    linked = _ran([*command, "--warn-unresolved-symbols", *runtime], path)
    unresolved = set(_UNRESOLVED.findall(linked.stderr))
    silent = not linked.stderr.strip()
    return linked.returncode == 0 and (silent or unresolved == _ONE_VERSION)


def _ran(command: Sequence[str], path: Path) -> subprocess.CompletedProcess[str]:
    """Run a linker that writes to a path, and return its answer, also when it failed.

    MachineError where it was killed, or ran out of space, memory or open files.
    """
    english = {**os.environ, "LC_ALL": "C"}
    try:
        ran = subprocess.run(
            command, capture_output=True, check=False, text=True, errors="replace", env=english
        )
    except FileNotFoundError as error:
        raise AnsorError(
            f"no linker to link {path.name} with: {error}",
            "install one (Debian: apt-get install g++), then repeat the build",
        ) from error
    if ran.returncode < 0 or _KILLED.search(ran.stderr):
        raise killed(f"the linker {Path(command[0]).name} was killed (status {ran.returncode})")
    if ran.returncode and (number := errno_in(ran.stderr)) is not None:
        temporary = "temporary file" in ran.stderr  # one of the compiler's own
        raise fault(number, tempfile.gettempdir() if temporary else path.parent)
    return ran


def _link(command: Sequence[str], path: Path, objects: Sequence[str]) -> None:
    """Link with this command; LinkError, with the linker's message, where it refuses."""
    linked = _ran([*command, "-o", str(path), *objects], path)
    if linked.returncode != 0:
        words = " | ".join(line.strip() for line in linked.stderr.splitlines() if line.strip())
        words = words or f"{command[0]} ended with status {linked.returncode} and said nothing"
        raise LinkError(
            f"{path.name} cannot be linked: {words[:_MESSAGE_CHARS]}",
            "run `ansor-deploy doctor`: it names the linkers that are here",
        )


def _command(target: Target) -> list[str]:
    """The command that links for a target, without the names of files."""
    if is_foreign(target):
        return [*cross_linker(target.triple), "-shared", "-z", "now", *_LEFT_OUT]
    return [_compiler(), "-shared", "-fPIC", *(f"-Wl,{word}" for word in _LEFT_OUT)]


def _compiler() -> str:
    """This machine's C++ compiler, as TVM finds it."""
    from .._tvm import tvm

    return tvm.support.cc.get_cc() or "c++"


@lru_cache(maxsize=1)
def _mapped() -> tuple[str, ...]:
    """The files of these libraries that this process has mapped.

    A search by name could find linker scripts instead.
    """
    with suppress(OSError):
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
        paths = {fields[5] for fields in (line.split(maxsplit=5) for line in maps) if fields[5:]}
        return tuple(sorted(path for path in paths if _CALLED.fullmatch(Path(path).name)))
    return ()


def _exporter(target: Target) -> Callable[..., None]:
    """A function that links object files for a target, with the signature TVM's export expects."""
    command = _command(target)

    def link(output: str, objects: Sequence[str], **_: Any) -> None:
        _link(command, Path(output), objects)

    link.get_target_triple = lambda: target.triple  # type: ignore[attr-defined]
    return link
