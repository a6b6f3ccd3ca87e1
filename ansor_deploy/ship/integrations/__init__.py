"""The folders with files for build systems and C programs."""

from pathlib import Path

from ...errors import AnsorError


def hook_folder(kind: str) -> Path:
    """The folder with the files of a kind: make, cmake, bazel or c."""
    return Path(__file__).resolve().parent / kind


def runtime_folder() -> Path:
    """The folder in which the packages tvm and tvm_ffi lie; it imports neither.

    AnsorError where one is missing, or they lie in different folders.
    """
    from ...runtime.native import library

    runtime = library().resolve()
    folder = runtime.parents[2]
    if not (folder / "tvm_ffi" / "lib" / "libtvm_ffi.so").is_file():
        hint = "install both in one environment: pip install 'apache-tvm==0.27.0.post1'"
        raise AnsorError(
            f"{runtime}: the package tvm_ffi does not lie beside the package tvm", hint
        )
    return folder
