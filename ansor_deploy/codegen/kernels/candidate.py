"""Build a candidate in a worker: from a schedule's trace to a shared library for a runner.

    main(x, weight, out), weight packed inside
    -->
    pack_0(weight, packed)                  runs once
    compute(x, packed, out)                 is timed

As in a deployed library, a block that packs a constant becomes a function of its own. Machine code
is generated once, and `linker.py` links it in milliseconds. Many candidates of a task pack in the
same way, so the object file of a packing function is kept for the next one. Assertions are left
out, since the arguments are made to satisfy them.
"""

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..._tvm import Structure, collect, relax, shape_of, tirx, tvm
from ...runtime.gpu_code import GpuKernel
from ...space.canonical_text import parse
from ...space.code_size import check_size
from ...space.default_schedule import default_schedule
from ...space.trace import replay
from ...system.limits import limit_processor
from ...target import Target, target_of
from ..gpu.machine_code import gpu_kernel
from ..linker import link_candidate
from .kernel import object_file
from .lowering import code_generation
from .signature import written

_PACKS = "meta_schedule.layout_rewrite_preproc"
COMPUTE = "compute"
_UNCHECKED = {"tirx.disable_assert": True}


def build(payload: dict[str, Any]) -> dict[str, Any]:
    """Build one candidate; {"path", "steps"}, or raises what TVM or the linker raised.

    payload: "text" of the task, "target", "path" to write, and "how" to schedule: "trace" with
    the "trace", "default", or "plain" for the program as it is; in a process of its own also
    "seconds" of processor time, after which the system ends it. steps: calls in order, each
    {"function", "arguments", "makes"}: an argument is ["task", i] for a parameter of the task,
    or ["made", k] for the k-th buffer that an earlier call made; "makes" has the shapes and dtypes
    of the buffers that this call fills.
    """
    if "seconds" in payload:
        limit_processor(payload["seconds"])
    mod, target = _parsed(payload["text"]), target_of(json.dumps(payload["target"]))
    functions, steps = _split(_scheduled(mod, target, payload))
    path = Path(payload["path"])
    if target.gpu is None:
        packing = [
            _kept_object(Structure(functions.pop(s["function"])), target) for s in steps[:-1]
        ]
        link_candidate([*packing, _object(functions, target)], path, target)
    else:
        path.write_bytes(_gpu_code(functions, target, target.gpu.arch))
    return {"path": payload["path"], "steps": steps}


def _gpu_code(functions: dict[str, Any], target: Target, arch: str) -> bytes:
    """Code for the target's own GPU, which times it: no PTX for newer ones is needed."""
    with code_generation(target):
        made = {n: gpu_kernel(func, n, target, arch) for n, func in functions.items()}
    return GpuKernel.library({n: replace(one, ptx=b"") for n, one in made.items()})


def _object(functions: dict[str, Any], target: Target) -> bytes:
    with code_generation(target, **_UNCHECKED):
        return object_file(functions, target)


@lru_cache(maxsize=64)
def _kept_object(program: Structure, target: Target) -> bytes:
    return _object({program.func.attrs["global_symbol"]: program.func}, target)


_parsed = lru_cache(maxsize=2)(parse)


def _scheduled(mod: Any, target: Target, payload: dict[str, Any]) -> Any:
    if payload["how"] == "plain":
        return mod["main"]
    traced = payload["how"] == "trace"
    sch = replay(mod, payload["trace"]) if traced else default_schedule(mod, target)
    check_size(sch, target)
    return sch.mod["main"]


def _split(func: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Functions by name, and the calls that together compute what the scheduled function does."""
    blocks = collect(func.body, tvm.s_tir.SBlock)
    if not any(_PACKS in (block.annotations or {}) for block in blocks):
        arguments = [["task", at] for at in range(len(func.params))]
        return {COMPUTE: _named(func, COMPUTE)}, [_step(COMPUTE, arguments, [])]
    mod = relax.transform.SplitLayoutRewritePreproc()(_wrapped(func))
    calls = [b for block in mod["main"].body.blocks for b in block.bindings]
    return _route(mod, calls, func)


def _wrapped(func: Any) -> Any:
    """A Relax module with a `main` that calls the function, as the pass that splits it needs."""
    outputs = written(func)
    first = len(func.params) - len(outputs)
    if outputs != tuple(range(first, len(func.params))):
        raise ValueError("a function that packs weights must have its outputs last")
    types = [relax.TensorType(shape_of(p), str(p.dtype)) for p in func.params]
    params = [relax.Var(f"p{at}", kind) for at, kind in enumerate(types[:first])]
    made = types[first] if len(outputs) == 1 else types[first:]
    builder = relax.BlockBuilder()
    callee = builder.add_func(_named(func, COMPUTE), COMPUTE)
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(relax.call_tir(callee, relax.Tuple(params), made))
        builder.emit_func_output(result)
    return builder.get()


def _route(mod: Any, bindings: list[Any], func: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Functions by name and the calls in order, with the buffers of the split `main` followed."""
    where: dict[Any, Any] = {p: ["task", at] for at, p in enumerate(mod["main"].params)}
    functions: dict[str, Any] = {}
    steps: list[dict[str, Any]] = []
    outputs = [["task", at] for at in written(func)]
    calls = [b for b in bindings if isinstance(b.value, relax.Call)]
    for binding in bindings:
        value = binding.value
        if isinstance(value, relax.TupleGetItem):
            where[binding.var] = where[value.tuple_value][value.index]
        elif isinstance(value, relax.Var):
            where[binding.var] = where[value]
        elif isinstance(value, relax.Call):
            last = binding is calls[-1]
            name = COMPUTE if last else f"pack_{len(steps)}"
            callee = mod[value.args[0]]
            functions[name] = _named(callee, name)
            given = [where[argument] for argument in value.args[1].fields]
            buffers = [] if last else _buffers(callee.params[len(given) :])
            first = sum(len(step["makes"]) for step in steps)
            made = outputs if last else [["made", first + k] for k in range(len(buffers))]
            steps.append(_step(name, given + made, buffers))
            where[binding.var] = made if len(made) > 1 else made[0]
    return functions, steps


def _buffers(params: Any) -> list[dict[str, Any]]:
    return [{"shape": list(shape_of(p)), "dtype": str(p.dtype)} for p in params]


def _step(function: str, arguments: list[Any], makes: list[Any]) -> dict[str, Any]:
    return {"function": function, "arguments": arguments, "makes": makes}


def _named(func: tirx.PrimFunc, name: str) -> tirx.PrimFunc:
    return func.with_attr("global_symbol", name).with_attr("tirx.is_scheduled", True)
