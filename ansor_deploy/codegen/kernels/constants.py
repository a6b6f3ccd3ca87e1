"""Compute at compile time what kernels compute from constants alone, such as packed weights.

TVM's own pass for this lets LLVM compile each kernel again, one after the other. Here they are
compiled as any other kernels, for this machine: in parallel, and cached for the next build.
"""

import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..._tvm import op_name, relax, shape_of, tvm
from ...runtime import native
from ...system.host import detect_host
from ...system.interrupt import in_any_case
from ...target import Target
from ..linker import link_candidate
from .heap import CpuKernel
from .objects import Kernel, compile_kernels


def fold(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with calls on constants replaced by their results, if their kernels compile."""
    functions = {name: f for name, f in mod.functions.items() if isinstance(f, relax.Function)}
    wanted = {call.args[0] for func in functions.values() for _, call in _constant_calls(func)}
    kernels = {name: Kernel.of(mod[name]) for name in wanted}
    made = compile_kernels(kernels.values(), _here())
    objects = {n: CpuKernel.from_bytes(c).code for n, c in made.items() if isinstance(c, bytes)}
    if not objects:
        return mod
    library = _loaded(objects)
    runs = {gv: library[one.symbol] for gv, one in kernels.items() if one.symbol in objects}
    folded = {name: _folded(func, runs) for name, func in functions.items()}
    return tvm.IRModule({**dict(mod.functions.items()), **folded})


def _constant_calls(func: Any) -> Iterator[tuple[Any, Any]]:
    """The variables bound to kernel calls whose arguments are all constants, and these calls."""
    known: set[Any] = set()
    for binding in _bindings(func):
        call = binding.value
        if op_name(call) != "relax.call_tir":
            continue
        given = call.args[1].fields
        constant = all(isinstance(one, tvm.ir.GenericConst) or one in known for one in given)
        if constant and isinstance(binding.var.ty, relax.TensorType) and len(call.args) == 2:
            known.add(binding.var)
            yield binding.var, call


def _folded(func: Any, runs: Mapping[Any, Any]) -> Any:
    """A function whose calls on constants are replaced by their results.

    runs: the kernels that could be compiled; calls of others stay.
    """
    results: dict[Any, Any] = {}
    for var, call in _constant_calls(func):
        given = [results.get(argument, argument) for argument in call.args[1].fields]
        if call.args[0] in runs and all(isinstance(one, tvm.ir.GenericConst) for one in given):
            result = native.empty(shape_of(var.ty), str(var.ty.dtype))
            runs[call.args[0]](*(one.value for one in given), result)
            results[var] = relax.const(result)
    blocks = [_rebound(block, results) for block in func.body.blocks]
    body = relax.SeqExpr(blocks, func.body.body)
    return relax.Function(func.params, body, func.ret_ty, func.is_pure, func.attrs)


def _rebound(block: Any, results: Mapping[Any, Any]) -> Any:
    bindings = [
        relax.VarBinding(one.var, results[one.var]) if one.var in results else one
        for one in block.bindings
    ]
    return type(block)(bindings)


def _bindings(func: Any) -> list[Any]:
    blocks = [block.bindings for block in func.body.blocks]
    return [one for block in blocks for one in block if isinstance(one, relax.VarBinding)]


def _loaded(objects: Mapping[str, bytes]) -> Any:
    """Object files linked to a library and loaded into this process."""
    folder = tempfile.TemporaryDirectory(prefix="ansor-deploy-")
    with in_any_case(folder.cleanup):
        path = Path(folder.name, "constants.so")
        link_candidate([objects[name] for name in sorted(objects)], path, _here())
        return native.load_module(path)


@cache
def _here() -> Target:
    return Target(name="here", **detect_host())
