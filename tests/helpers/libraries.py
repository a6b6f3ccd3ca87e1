"""What a build leaves, made without one."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from ansor_deploy.artifact.outputs import commit, staged
from ansor_deploy.project import shipped
from ansor_deploy.target import Target, load_target

HOST = load_target("host", [shipped("targets")])
TVM = "0.27.0.post1"


def manifest(target: Target = HOST, tvm: str = TVM) -> dict[str, Any]:
    """What a build without tasks says of its library, but for the library itself."""
    return {
        "tool": "0.2.0",
        "tvm": tvm,
        "linker": "ld 2.40",
        "identity": "a" * 64,
        "model": {
            "name": "m.onnx",
            "sha256": "b" * 64,
            "digest": "b" * 64,
            "external": [],
            "input_shapes": {},
        },
        "inputs": [],
        "outputs": [],
        "rules": [],
        "target": {**target.to_json(), "fingerprint": target.fingerprint},
        "tasks": [],
        "kernels": [],
        "others": [],
        "memory": dict.fromkeys(("library", "weights", "workspace", "peak"), 0),
        "verification": {"verified": False, "where": None, "reason": "unasked", "allowed": {}},
        "shipped": "untuned",
        **dict.fromkeys(("lock", "ran_on", "speed", "tuning", "variants", "verify")),
    }


def build(output: Path, target: Target = HOST, tvm: str = TVM) -> None:
    """What a build leaves behind, but the library is Python itself."""
    with staged(output, lambda path: shutil.copy(sys.executable, path)) as library:
        commit(library, output, manifest(target, tvm), header=True)
