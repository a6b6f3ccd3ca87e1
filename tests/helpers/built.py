"""Models and programs compiled and run in this process, for tests of what they compute."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tvm
from tvm import relax

from ansor_deploy._tvm import parsing
from ansor_deploy.codegen.kernels import lowering
from ansor_deploy.codegen.model import Compiled, compile_model
from ansor_deploy.devices.bare import open_bare
from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.model.relax.importer import Imported, import_model
from ansor_deploy.runtime.functions import open_machine
from ansor_deploy.ship.verify.tolerance import compare
from ansor_deploy.space.block_view import BlockView, blocks
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import Target, load_target
from ansor_deploy.testing.rule import kernel_outputs
from helpers import graphs

__all__ = ["HOST", "kernel_outputs"]

HOST = load_target("host", [shipped("targets")])


def with_vectors(size: int, registers: int = 16) -> Target:
    """This host, with a target whose vectors have so many bytes."""
    return replace(HOST, name=f"host-{size}", vector_bytes=size, vector_registers=registers)


def loop_outputs(mod: tvm.IRModule) -> list[np.ndarray]:
    """As `kernel_outputs`, of unoptimised code: for what loops compute, not for their speed."""
    return kernel_outputs(mod, effort=0)


def imported(proto: onnx.ModelProto, target: Target = HOST) -> Imported:
    return import_model(canonical_graph(proto), target)


def compiled(proto: onnx.ModelProto, target: Target = HOST) -> Compiled:
    """The model with default schedules."""
    model = imported(proto, target)
    return compile_model(model, extract(model.mod, target), {}, target)


def main_of(model: Compiled) -> Any:
    """The function that computes the model in this process."""
    with tempfile.TemporaryDirectory() as folder:
        model.export(path := Path(folder, "model.so"), HOST)
        return open_machine(path, ["main"])["main"]


def run(
    proto: onnx.ModelProto, feeds: Mapping[str, np.ndarray], target: Target = HOST
) -> list[np.ndarray]:
    """The model's outputs with default schedules, in a process with the runtime alone."""
    model = imported(proto, target)
    made = compile_model(model, extract(model.mod, target), {}, target)
    (interface,) = model.interfaces
    manifest = {**interface.to_json(), "target": target.to_json()}
    given = {info.name: feeds[info.name] for info in interface.inputs}
    with tempfile.TemporaryDirectory() as folder, open_bare() as bare:
        made.export(path := Path(folder, "model.so"), target)
        outputs = bare.load(path, manifest)(**given)
    return [outputs[value.name] for value in proto.graph.output]


def assert_like_oracle(proto: onnx.ModelProto) -> None:
    """The library's outputs are ONNX Runtime's, including shapes and types."""
    feeds = graphs.random_feeds(proto)
    for have, want in zip(run(proto, feeds), graphs.run(proto, feeds), strict=True):
        assert (have.shape, have.dtype) == (want.shape, want.dtype)
        ok, worst, _ = compare(have, want)
        assert ok, f"off by {worst}"


def count_ops(proto: onnx.ModelProto, target: Target = HOST) -> dict[str, int]:
    """How often main of the imported model calls each fused function, by the function's name."""
    return calls_of(imported(proto, target).mod)


def calls_of(mod: tvm.IRModule) -> dict[str, int]:
    """How often main calls each fused function, by the function's name."""
    found: dict[str, int] = {}

    def visit(expr: Any) -> None:
        if isinstance(expr, relax.Call) and getattr(expr.op, "name", "") == "relax.call_tir":
            name = expr.args[0].name_hint
            found[name] = found.get(name, 0) + 1

    relax.analysis.post_order_visit(mod["main"], visit)
    return found


def machine_code(proto: onnx.ModelProto, target: Target) -> str:
    """The assembly of a model's largest kernel with its default schedule."""
    model = imported(proto, target)
    task = max(extract(model.mod, target).values(), key=lambda one: one.workload.flops)
    kernel = {"main": default_schedule(task.mod, target).mod["main"]}
    return lowering.compiled(kernel, target).inspect_source("asm")


def in_turn(mod: tvm.IRModule) -> tvm.IRModule:
    """A GPU program with its threads run one after another, each loading shared data for itself."""
    text = re.sub(r'T\.thread_binding\((\d+), thread="[\w.]+"', r"T.serial(\1", mod.script())
    with parsing():
        return tvm.script.from_source(re.sub(r', scope="(?:shared|local)"', "", text))


def reduction(mod: tvm.IRModule) -> BlockView:
    """The first reduction block of a program."""
    sch = tvm.s_tir.Schedule(mod, debug_mask="none")
    return next(view for rv in blocks(sch) if (view := BlockView(sch, rv)).is_reduction)
