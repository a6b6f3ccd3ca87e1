"""Wheels for any version of Python: ansor_deploy_runtime, and a model as a package that uses it."""

import base64
import hashlib
import re
import tempfile
import zipfile
from collections.abc import Mapping
from keyword import iskeyword
from pathlib import Path

from ... import __version__
from ...system.atomic_file import writing_whole
from ...system.host import architecture
from ..manifest import Manifest, manifest_path
from .elf import needed_glibc
from .python_runtime import write_python_runtime

_NAME = "ansor_deploy_runtime"
_METADATA = f"""\
Metadata-Version: 2.1
Name: ansor-deploy-runtime
Version: {__version__}
Summary: Load and run libraries that ansor-deploy built: no compiler, and NumPy alone
Requires-Python: >=3.10
Requires-Dist: numpy>=1.24
Provides-Extra: bfloat16
Requires-Dist: ml_dtypes>=0.5; extra == "bfloat16"
"""
_MODEL_METADATA = """\
Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {model}, built by ansor-deploy for {target}
Requires-Python: >=3.10
Requires-Dist: ansor-deploy-runtime>={tool}
"""
_MODEL = '''\
"""A model that ansor-deploy built: `load()(x=array)["y"]`."""

from pathlib import Path

import ansor_deploy_runtime

LIBRARY = Path(__file__).with_name({library!r})


def load(threads: int = 0) -> ansor_deploy_runtime.Model:
    """The model. threads: that a call takes; 0 for as many as its target has cores."""
    return ansor_deploy_runtime.load(LIBRARY, threads)
'''
_WHEEL = """\
Wheel-Version: 1.0
Generator: ansor-deploy
Root-Is-Purelib: false
Tag: {tag}
"""
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a ZIP file can have


def write_wheel(folder: Path, arch: str, wheels: Path) -> Path:
    """Write the wheel for an architecture into a folder; its path. Errors: as in `c_runtime`."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        write_python_runtime(root, arch, wheels)
        glibc = "{}_{}".format(*max(map(needed_glibc, root.rglob("*.so"))))
        tag = f"py3-none-manylinux_{glibc}_{arch}"
        paths = sorted(path for path in root.rglob("*") if path.is_file())
        files = {str(path.relative_to(root)): path.read_bytes() for path in paths}
    return _written(folder, f"{_NAME}-{__version__}", tag, _METADATA, files)


def write_model_wheel(folder: Path, library: Path, manifest: Manifest) -> Path:
    """Write the wheel of a built library, as a package of its name, into a folder; its path."""
    name, version = module_name(library), f"0+{manifest.artifact.sha256[:12]}"
    target = manifest.target
    tag = "py3-none-manylinux_{}_{}_{}".format(*needed_glibc(library), architecture(target.triple))
    known = {"model": manifest.model.name, "target": target.name, "tool": manifest.tool}
    metadata = _MODEL_METADATA.format(name=name.replace("_", "-"), version=version, **known)
    files = {
        f"{name}/__init__.py": _MODEL.format(library=library.name).encode(),
        f"{name}/py.typed": b"",
        f"{name}/{library.name}": library.read_bytes(),
        f"{name}/{manifest_path(library).name}": manifest_path(library).read_bytes(),
    }
    return _written(folder, f"{name}-{version}", tag, metadata, files)


def module_name(library: Path) -> str:
    """The name of a library as Python can import it: "resnet_18" for "resnet-18.so"."""
    name = re.sub(r"[^a-z0-9]+", "_", library.stem.lower()).strip("_")
    return name if name.isidentifier() and not iskeyword(name) else f"model_{name}".rstrip("_")


def _written(folder: Path, release: str, tag: str, metadata: str, own: Mapping[str, bytes]) -> Path:
    """Write a wheel; equal files give equal bytes. release: its name and version."""
    info = f"{release}.dist-info"
    files = {
        **own,
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": _WHEEL.format(tag=tag).encode(),
    }
    record = f"{info}/RECORD"
    lines = [f"{name},sha256={_digest(code)},{len(code)}\n" for name, code in files.items()]
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    path = folder / f"{release}-{tag}.whl"
    with writing_whole(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o100644 << 16
            wheel.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return path


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
