"""The outputs of a build, made without one."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from msgspec import convert

from ansor_deploy.ship.manifest import Manifest
from ansor_deploy.ship.outputs.commit import commit, staged
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import Target, load_target

HOST = load_target("host", [shipped("targets")])
TVM = "0.27.0.post1"


def manifest(machine: Target = HOST, **said: Any) -> Manifest:
    """The manifest of a build without tasks for a machine. said: fields, as JSON."""
    known = {
        "format": 2,
        "tool": "0.2.0",
        "tvm": TVM,
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
        "target": {**machine.to_json(), "fingerprint": machine.fingerprint},
        "precision": "default",
        "tasks": [],
        "kernels": [],
        "others": [],
        "memory": dict.fromkeys(("library", "weights", "workspace", "peak"), 0),
        "shipped": "untuned",
        "verification": {"verified": False, "where": None, "reason": None, "allowed": {}},
        **dict.fromkeys(("lock", "ran_on", "speed", "tuning", "variants", "verify", "header")),
        "artifact": {"file": "m.so", "bytes": 0, "sha256": "c" * 64},
    }
    return convert({**known, **said}, Manifest)


def task(key: str, **said: Any) -> dict[str, Any]:
    """A task in a manifest, as JSON. said: some of its fields."""
    known = {"name": "t", "title": "t", "op": "add", "record": "default", "weight": 1}
    return {
        **dict.fromkeys(("impact", "latency_ms", "fallback", "rewriting", "lender")),
        "key": key,
        "flops": 0.0,
        "bytes": 0.0,
        "places": [],
        **known,
        **said,
    }


def build(output: Path, target: Target = HOST, tvm: str = TVM) -> None:
    """Write a build's outputs, with Python's executable as the library."""
    with staged(output, lambda path: shutil.copy(sys.executable, path)) as library:
        commit(library, output, manifest(target, tvm=tvm), header=True)
