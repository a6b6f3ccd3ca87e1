"""The only door to TVM. Importing this module imports TVM, after a check that this is safe.

Every other module of the engine takes its TVM names from here, and is itself imported only when a
command needs it, so that `--help`, registry queries and an unchanged build stay fast.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from traceback import walk_stack
from typing import TYPE_CHECKING, Any

import numpy as np

from ._tvm_import import environment, replaced, without_repetition
from .errors import AnsorError
from .system import heap, tvm_pairing
from .system.environment import version

if TYPE_CHECKING:
    from .target import Target

if not tvm_pairing.is_known() and (reason := tvm_pairing.why_it_fails()):
    raise AnsorError(
        f"{tvm_pairing.pair()} do not work together: {reason}", f"run: {tvm_pairing.PIN}"
    )


# TVM makes a folder for its own tests' downloads in the home directory, which may not exist or not
# be writable, as for a process behind a fence. Loading all of its backends takes a third of the
# import's time, and only one is used, for GPUs. A quarter goes into finding out that this
# distribution has no `disco`: its first error makes TVM read all symbols of its library.
os.environ.setdefault("TEST_DATA_ROOT_PATH", os.sep)
with environment(XDG_CACHE_HOME=os.sep, TVM_DEVICE_BACKEND_AUTOLOAD="0"), without_repetition():
    sys.modules.setdefault("tvm.runtime.disco", None)  # type: ignore[arg-type]
    import tvm
    from tvm import relax, sym, tirx
    from tvm.backend.loader import load as load_backend
    from tvm.relax.op import vm
    from tvm.s_tir import meta_schedule
    from tvm.script.parser.core import doc
    from tvm_ffi import (
        WalkResult,
        container,
        structural,
        structural_equal,
        structural_hash,
        structural_walk,
    )
    from tvm_ffi.serialization import from_json_graph_str


def _without_type_checks(schedule: Any) -> None:
    """Let callers reach a schedule's primitives directly.

    TVM checks each argument against the method's annotations in Python before C++ does the same,
    which takes a quarter of the time to make a program.
    """
    for name, method in list(vars(schedule).items()):
        if hasattr(method, "__wrapped__"):
            setattr(schedule, name, method.__wrapped__)


_without_type_checks(tvm.s_tir.Schedule)

heap.keep_freed_blocks()  # which the steps of a schedule take and free

# Each walk and rewrite of a program looks up the types of its callbacks in their annotations. That
# takes a tenth of the time of a search's step, so the look-ups are cached.
_index_of = structural._callback_type_to_type_index = cache(structural._callback_type_to_type_index)  # noqa: SLF001
_POSTORDER = int(structural.WalkOrder.POSTORDER)

# TVM's arrays check each index in Python, which takes twice as long as all the rest of a loop.
container.Array.__iter__ = lambda array: map(
    partial(container._ffi_api.ArrayGetItem, array),  # noqa: SLF001
    range(len(array)),
)

# TVMScript's parser checks this for every field of every node, which takes a fifth of its time.
_ATOMS = (type(None), type(...), int, float, str, bytes, complex)
doc._is_atomic_type = lambda node: isinstance(node, _ATOMS)  # noqa: SLF001


def _frames() -> list[inspect.FrameInfo]:
    """The same as `inspect.stack`, without reading the source around every frame."""
    _, *frames = walk_stack(inspect.currentframe())
    return [
        inspect.FrameInfo(frame, frame.f_code.co_filename, line, frame.f_code.co_name, None, None)
        for frame, line in frames
    ]


def parsing() -> AbstractContextManager[None]:
    """A context for TVMScript's parser, in which `inspect.stack` reads no sources.

    The parser calls it for each function to find variables, which takes a third of its time, and
    more in a deep stack.
    """
    return replaced(inspect, "stack", _frames)


def __getattr__(name: str) -> Any:
    """The ONNX front end, which imports onnx: only a build needs it."""
    if name != "onnx_frontend":
        raise AttributeError(name)
    from tvm.relax.frontend.onnx import onnx_frontend

    return onnx_frontend


def collect(root: Any, *kinds: Any) -> list[Any]:
    """Every node of these types in a program, children before their parents."""
    found: list[Any] = []
    # As TVM's `structural_walk`, which takes several times longer to look at its arguments.
    entries = [(_index_of(kind, api_name="collect"), found.append) for kind in kinds]
    structural._ffi_api.StructuralWalk(root, entries, [], _POSTORDER)  # noqa: SLF001
    return found


def _rewritten(rewrite: Callable[..., Any], root: Any, callbacks: Any, **named: Any) -> Any:
    """What one of TVM's rewrites makes with callbacks that may fail as any function may.

    An exception that TVM's C++ code passes on can end the process, as does what it makes of a
    callback that returns None. So the rewrite goes on without changes, and raises behind it.
    """
    failed: list[BaseException] = []

    def guarded(callback: Callable[..., Any]) -> Callable[..., Any]:
        def called(node: Any, *rest: Any) -> Any:
            try:
                made = node if failed else callback(node, *rest)
            except BaseException as error:  # noqa: BLE001 - raised below
                failed.append(error)
                return node
            if made is None and node is not None:
                failed.append(TypeError(f"{_name(callback)} returned None for a {_kind(node)}"))
            return node if made is None else made

        called.__wrapped__ = callback  # type: ignore[attr-defined] # TVM looks at its parameters
        return called

    listed = structural._normalize_callbacks(callbacks, api_name="a rewrite")  # noqa: SLF001
    result = rewrite(root, [(kind, guarded(callback)) for kind, callback in listed], **named)
    if failed:
        raise failed.pop()
    return result


def _name(callback: Any) -> str:
    return getattr(callback, "__qualname__", "a callback")


def _kind(node: Any) -> str:
    return type(node).__name__


def structural_map(root: Any, callbacks: Any, order: str = "post") -> Any:
    """A program with what callbacks return for its nodes, changed or not, as TVM's function.

    callbacks: (type, callback), or several of these; their exceptions are raised here. order: "pre"
    if parents come before their children.
    """
    return _rewritten(structural.structural_map, root, callbacks, order=order)


def structural_mutate(root: Any, callbacks: Any) -> Any:
    """As `structural_map`, with callbacks that get a mutator for the children of their node."""
    return _rewritten(structural.structural_mutate, root, callbacks)


def bindings(function: Any) -> list[Any]:
    """All bindings of a Relax function, in order."""
    return [one for block in function.body.blocks for one in block.bindings]


def op_name(expr: Any) -> str:
    """The name of the operator that an expression calls; "" where it calls none."""
    return str(getattr(getattr(expr, "op", None), "name", ""))


def shape_of(tensor: Any) -> tuple[int, ...]:
    """The extents of a buffer, or of a tensor's type."""
    return tuple(int(extent) for extent in tensor.shape)


@dataclass(frozen=True)
class Structure:
    """A function that compares and hashes by its structure."""

    func: Any

    def __hash__(self) -> int:
        return int(structural_hash(self.func))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and bool(structural_equal(self.func, other.func))


def uses(expr: Any, var: Any) -> bool:
    """Whether an index expression uses a variable."""
    if isinstance(expr, (tirx.Var, tirx.IntImm)):  # the usual case
        return bool(expr.same_as(var))
    return any(found.same_as(var) for found in collect(expr, tirx.Var))


def substituted(node: Any, values: Sequence[tuple[Any, Any]]) -> Any:
    """An expression or a statement in which values replace variables."""

    def value(var: Any) -> Any:
        return next((new for old, new in values if old.same_as(var)), var)

    return structural_map(node, (tirx.Var, value))


def at_step(expr: Any, loop: Any, step: int) -> Any:
    """An expression of a loop's body at one step of the loop, counted from 0."""
    return substituted(expr, [(loop.loop_var, loop.min + step)])


def lane(value: Any) -> Any:
    """The element of a vector with equal lanes; any other value as it is."""
    return value.value if isinstance(value, tirx.Broadcast) else value


def conjuncts(condition: Any) -> list[Any]:
    """The conditions that an `and` joins; a condition without one is the only one."""
    if isinstance(condition, tirx.And):
        return [*conjuncts(condition.a), *conjuncts(condition.b)]
    return [condition]


def elements(constant: Any) -> np.ndarray:
    """The elements of a constant, in its own memory: do not write to them.

    They are a copy only where NumPy lacks the type, such as bfloat16.
    """
    try:
        return np.from_dlpack(constant.value)
    except RuntimeError:
        return constant.value.numpy()


def llvm_target(target: Target) -> dict[str, Any]:
    """A target's processor as a TVM target of kind "llvm"."""
    host: dict[str, Any] = {"kind": "llvm", "mcpu": target.cpu, "mtriple": target.triple}
    host["num-cores"] = target.cores
    if target.features:
        host["mattr"] = list(target.features)
    return host


def tvm_target(target: Target) -> tvm.target.Target:
    """The code generator's view of a target."""
    host = llvm_target(target)
    if target.gpu is None:
        return tvm.target.Target(host)
    load_backend(target.kind)
    device = {
        "kind": target.kind,
        "arch": target.gpu.arch,
        "max_threads_per_block": target.gpu.max_threads_per_block,
        "max_shared_memory_per_block": target.gpu.shared_bytes_per_block,
        "thread_warp_size": target.gpu.warp_size,
    }
    return tvm.target.Target(device, host=host)


@lru_cache(maxsize=256)
def has_features(target: str, features: tuple[str, ...]) -> bool:
    """Whether code for a target may use these LLVM features. target: TVM's text of it."""
    has = tvm.target.codegen.target_has_features
    return bool(has(list(features), tvm.target.Target(target)))


VERSION = version("apache-tvm")

__all__ = [
    "VERSION",
    "WalkResult",
    "bindings",
    "collect",
    "elements",
    "from_json_graph_str",
    "has_features",
    "llvm_target",
    "load_backend",
    "meta_schedule",
    "op_name",
    "relax",
    "replaced",
    "shape_of",
    "structural_equal",
    "structural_hash",
    "structural_map",
    "structural_mutate",
    "structural_walk",
    "sym",
    "tirx",
    "tvm",
    "tvm_target",
    "uses",
    "vm",
]
