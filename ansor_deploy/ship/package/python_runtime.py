"""The package ansor_deploy_runtime, which runs a library with Python and NumPy alone.

It is `ansor_deploy.runtime` itself, with the few modules that it imports. It uses the C API instead
of the package tvm_ffi, so it is the same for every version of Python.
"""

import shutil
from pathlib import Path

from ... import __version__
from ...devices.board_bundle import own_modules
from ...devices.c_runtime import c_runtime

PACKAGE = "ansor_deploy_runtime"
# Modules by folder. A test checks that everything they import is among them.
_MODULES = {
    "": "errors",
    "runtime": "__main__ batches c_functions context dlpack fit interface lengths manifest_json "
    "model out_of_range session shared steps tensors wrong_processor",
    "system": "host regular_file",
}
_RENAMED = {"runtime/c_functions.py": "runtime/functions.py"}
_WRITTEN = {
    "__init__.py": f'''"""Load and run what ansor-deploy built: `load("model.so")(x=array)["y"]`."""

from typing import TYPE_CHECKING

from . import runtime

if TYPE_CHECKING:
    from .runtime import Interface, Model, TensorInfo, load

__all__ = ["Interface", "Model", "TensorInfo", "load"]
__version__ = "{__version__}"


def __getattr__(name: str) -> object:
    """Import one of these names at first use: without NumPy, the command can say so."""
    return getattr(runtime, name)
''',
    "__main__.py": '''"""As `runtime/__main__.py`."""

import sys

try:
    from .runtime.__main__ import main
except ModuleNotFoundError as error:
    if error.name != "numpy":
        raise
    hint = "pip install numpy, or on Debian: apt-get install python3-numpy"
    sys.exit(f"error: {error}\\n  hint: {hint}")

main()
''',
}


def write_python_runtime(folder: Path, arch: str, wheels: Path) -> None:
    """Write the package below a folder, with libraries for an architecture.

    wheels, and errors: as in `c_runtime`.
    """
    package = folder / PACKAGE
    package.mkdir(parents=True)
    for name, content in python_files().items():
        path = package / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    made = folder / "made"
    made.mkdir()
    c_runtime(arch, made, wheels, program=False)
    shutil.move(made / "lib", package / "lib")
    made.rmdir()


def python_files() -> dict[str, bytes]:
    """The modules of the package, by their paths in it."""
    shared = {_RENAMED.get(name, name): code for name, code in own_modules(_MODULES).items()}
    return shared | {name: text.encode() for name, text in _WRITTEN.items()}
