"""The distribution ansor-deploy-runtime: ansor_deploy_runtime as a wheel, for any Python.

It is built in a checkout, by `runtime/pyproject.toml`.
"""

import base64
import hashlib
import tempfile
import zipfile
from pathlib import Path

from ... import __version__
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
_WHEEL = """\
Wheel-Version: 1.0
Generator: ansor-deploy
Root-Is-Purelib: false
Tag: {tag}
"""
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first that a ZIP file can name


def write_wheel(folder: Path, arch: str, wheels: Path) -> Path:
    """Write the wheel for an architecture into a folder; its path. Errors: as of `c_runtime`."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        write_python_runtime(root, arch, wheels)
        glibc = "{}_{}".format(*max(map(needed_glibc, root.rglob("*.so"))))
        tag = f"py3-none-manylinux_{glibc}_{arch}"
        paths = sorted(path for path in root.rglob("*") if path.is_file())
        files = {str(path.relative_to(root)): path.read_bytes() for path in paths}
    info = f"{_NAME}-{__version__}.dist-info"
    files[f"{info}/METADATA"] = _METADATA.encode()
    files[f"{info}/WHEEL"] = _WHEEL.format(tag=tag).encode()
    record = f"{info}/RECORD"
    lines = [f"{name},sha256={_digest(code)},{len(code)}\n" for name, code in files.items()]
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    path = folder / f"{_NAME}-{__version__}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o100644 << 16
            wheel.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return path


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
