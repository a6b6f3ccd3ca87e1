"""The tasks of an imported module: equal subgraphs are one task with a weight."""

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..._tvm import collect, elements, relax, tirx, tvm
from ...registry.record import TaskKey, Workload
from ...runtime.tensors import numpy_dtype
from ...space.block_view import REDUCE, SPATIAL, BlockView, blocks, factor, uses
from ...space.canonical_text import APART, canonical_program, canonical_text
from ...system.digest import sha256
from ...target import Target
from ..tasks import Task

_MOST_WORDS = 24  # of a task's name
_CONVOLUTION = re.compile(r"(depthwise_)?conv[123]d")
_TWO_WORDS = re.compile(r"[a-z]+_norm|strided_slice")  # operators with an underscore in the name


def extract(
    mod: tvm.IRModule, target: Target, step: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, Task]:
    """The task of each fused function of an imported module, by the function's name.

    Functions with the same program share one Task; its weight counts the calls of all of them.
    step: called with the number of tasks that are made, and their total.
    """
    calls = _count_calls(mod)
    functions = {
        gv.name_hint: func
        for gv, func in mod.functions.items()
        if isinstance(func, tirx.PrimFunc) and calls[gv.name_hint] and _has_choices(func)
    }
    texts = {name: canonical_text(func) for name, func in functions.items()}
    weights: Counter[str] = Counter()
    for name, text in texts.items():
        weights[text] += calls[name]
    made: dict[str, Task] = {}
    distance = bytes_of_weights(mod)
    for name, text in texts.items():
        if text not in made:
            program = canonical_program(functions[name])
            task = _task(name, text, program, weights[text], target)
            apart = tuple(map(str, (functions[name].attrs or {}).get(APART, ())))
            made[text] = replace(task, reuse_distance=distance, apart=apart)
            step(len(made), len(weights))
    return {name: made[text] for name, text in texts.items()}


def _has_choices(func: Any) -> bool:
    """Whether there is anything to schedule and to measure.

    A reshape becomes a view of its input. TVM writes sorts and scans as complete code, and scalars
    are single statements: their blocks have no axes. An axis without elements, as where a window
    has no place, leaves rules nothing to tile.
    """
    axes = [axis for block in collect(func.body, tvm.s_tir.SBlock) for axis in block.iter_vars]
    extents = [axis.dom.extent for axis in axes]
    empty = any(isinstance(one, tirx.IntImm) and not int(one) for one in extents)
    return bool(axes) and not empty and not relax.analysis.has_reshape_pattern(func)


def task_of(func: Any, name: str, target: Target) -> Task:
    """The task of one function (`tirx.PrimFunc`), outside any model."""
    return _task(name, canonical_text(func), canonical_program(func), 1, target)


def _task(name: str, text: str, program: Any, weight: int, target: Target) -> Task:
    whole = readable(name)
    op, plain = _anchor(program, whole), shortened(whole)
    if _CONVOLUTION.fullmatch(op) and (step := _dilation(program)) > 1:
        plain += f"_d{step}"  # for the title, because shapes do not show it
    buffers = program["main"].params
    shapes = tuple(tuple(int(extent) for extent in buffer.shape) for buffer in buffers)
    dtypes = tuple(str(buffer.dtype) for buffer in buffers)
    workload = Workload(
        key=sha256(text),
        text=text,
        op=op,
        name=plain,
        family=sha256(f"{op}|{dtypes}|{[len(shape) for shape in shapes]}|{_shapeless(text)}"),
        shapes=shapes,
        dtypes=dtypes,
        flops=float(tvm.s_tir.analysis.estimate_tir_flops(program)),
        bytes=_traffic(program),
    )
    return Task(plain, TaskKey(workload.key, target.fingerprint), workload, weight, program)


def _traffic(program: Any) -> float:
    """Bytes that one run moves if every element is transferred once.

    For a table that is only looked up, the look-ups count, not its size.
    """
    sch = tvm.s_tir.Schedule(program, debug_mask="none")
    nodes = [sch.get(block) for block in blocks(sch)]
    total = 0.0
    for buffer in program["main"].params:
        reads = [
            math.prod(int(axis.dom.extent) for axis in node.iter_vars)
            for node in nodes
            if any(region.source.same_as(buffer) for region in node.reads)
        ]
        elements = math.prod(int(extent) for extent in buffer.shape)
        touched = min(elements, sum(reads)) if reads else elements
        total += touched * numpy_dtype(str(buffer.dtype)).itemsize
    return total


def readable(name: str) -> str:
    """The fused function's name without the numbers that make such names unique."""
    words = name.removeprefix("fused_").split("_")
    plain = [re.sub(r"^((?:conv|pool)[123]d|\D+)\d*$", r"\1", word) for word in words]
    return "_".join(word for word in plain if word != "tir")


def shortened(name: str) -> str:
    """A name for people to read: hundreds of operators may be fused."""
    words = name.split("_")
    return name if len(words) <= _MOST_WORDS else "_".join([*words[:12], "etc", *words[-6:]])


def _anchor(program: Any, readable: str) -> str:
    """The operator that costs most: the contraction's if there is one, else the first in the name.

    A depthwise convolution is an operator of its own, since it does not sum over channels.
    """
    words = readable.split("_")
    known = r"conv[123]d|pool[123]d|matmul|dense|softmax"
    op = next((word for word in words if re.fullmatch(known, word)), words[0])
    if op.startswith("conv") and "transpose" in words[words.index(op) : words.index(op) + 2]:
        return f"{op}_transpose"
    if op.startswith("conv"):
        # Scales and zero points may be parameters between the data and the kernel.
        _, kernel, *_ = (p.shape for p in program["main"].params if len(p.shape) > 2)
        return f"depthwise_{op}" if int(kernel[-2]) == 1 and int(kernel[-1]) > 1 else op
    if op.startswith("pool"):
        return "_".join(words[max(0, words.index(op) - 1) : words.index(op) + 1])
    if found := _TWO_WORDS.match(readable):
        return found[0]
    return op


def _dilation(program: Any) -> int:
    """The largest dilation of the program's windows, in elements of an image."""
    sch = tvm.s_tir.Schedule(program, debug_mask="none")
    return max(map(_apart, (BlockView(sch, block) for block in blocks(sch))))


def _apart(view: BlockView) -> int:
    """The dilation of a block's window in elements; 1 if it has no window."""
    rows, taps = view.axes(SPATIAL), view.axes(REDUCE)
    images = [
        index
        for _, indices in view.operands
        for index in indices
        if any(uses(index, row.var) for row in rows)
    ]
    return max((factor(index, tap.var) for index in images for tap in taps), default=1)


def _shapeless(text: str) -> str:
    """The program's structure with every number of its shapes masked."""
    body = text.split("\n", 2)[-1]
    return re.sub(r"T\.int64\(-?\d+\)|\b\d+\b", "#", body)


def bytes_of_weights(mod: tvm.IRModule) -> int:
    """Bytes of weights in the module's graph that has most of them."""
    mains = [func for func in mod.functions.values() if isinstance(func, relax.Function)]
    arrays = [[elements(one) for one in collect(main, tvm.ir.GenericConst)] for main in mains]
    # An array that several kernels read counts once.
    sizes = [{one.ctypes.data: one.nbytes for one in each} for each in arrays]
    return max((sum(each.values()) for each in sizes), default=0)


def operations(mod: tvm.IRModule) -> float:
    """Floating-point operations of a run of a module in one shape."""
    calls, count = _count_calls(mod), tvm.s_tir.analysis.estimate_tir_flops
    return sum(n * float(count(tvm.IRModule({"main": mod[name]}))) for name, n in calls.items())


def _count_calls(mod: tvm.IRModule) -> Counter[str]:
    return Counter(
        call.args[0].name_hint
        for func in mod.functions.values()
        if isinstance(func, relax.Function)
        for call in collect(func, relax.Call)
        if getattr(call.op, "name", "") == "relax.call_tir"
    )
