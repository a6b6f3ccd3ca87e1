"""Weights of a library: one read-only block behind the code, which is mapped and never copied.

    main(x)                 constants inside
    -->
    main(x, w0, w1)         its last arguments are bound once, when the library is loaded
    main_weights(block)     (view of w0, view of w1): what they are bound to
    weights_size()          bytes of the block

TVM writes constants into a library as data that is copied into memory of its own whenever one is
loaded. In the block they are pages of the file: all processes that run the library share them, and
the system may drop them and read them again. The linker never sees the block. It is appended to
what was linked, where no loader of ELF files looks: it is the last that a library has.
"""

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._tvm import relax, structural_map, tvm

# Where a tensor may begin, in bytes: what kernels are compiled to rely on (TVM's kAllocAlignment).
ALIGNMENT = 64
_SIZE = "weights_size"


@dataclass(frozen=True)
class Place:
    """Where in the block a tensor begins, in bytes, and what it is."""

    offset: int
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Weights:
    """The distinct constants of a library, in the order of their first use.

    block: their bytes; each begins at a multiple of `ALIGNMENT`. places: of each function's last
    arguments.
    """

    block: bytearray = field(default_factory=bytearray, repr=False)
    places: dict[str, tuple[Place, ...]] = field(default_factory=dict)
    _offsets: dict[bytes, int] = field(default_factory=dict, repr=False)

    def place(self, content: bytes) -> int:
        """Offset of a constant in the block; equal ones have the same."""
        digest = hashlib.sha256(content).digest()
        if digest not in self._offsets:
            self.block.extend(bytes(-len(self.block) % ALIGNMENT))
            self._offsets[digest] = len(self.block)
            self.block.extend(content)
        return self._offsets[digest]

    def append_to(self, library: Path) -> None:
        """Write the block behind the end of a file."""
        with library.open("r+b") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(end + -end % ALIGNMENT)
            file.write(self.block)


def lift(mod: tvm.IRModule) -> tuple[tvm.IRModule, Weights]:
    """A lowered module with the constants of its Relax functions as arguments, and the constants.

    Lowered, since a function would otherwise check each of its arguments in every call.
    """
    functions, weights = dict(mod.functions.items()), Weights()
    for name, func in mod.functions.items():
        if isinstance(func, relax.Function):
            lifted = _Lifted(weights)
            body = structural_map(func.body, (tvm.ir.GenericConst, lifted.argument))
            params = [*func.params, *lifted.arguments.values()]
            functions[name] = relax.Function(params, body, func.ret_ty, func.is_pure, func.attrs)
            weights.places[name.name_hint] = places = tuple(lifted.arguments)
            binder = f"{name.name_hint}_weights"
            block = relax.Var("block", relax.ObjectType())
            views = relax.Tuple([_view(block, place) for place in places])
            functions[tvm.ir.GlobalVar(binder)] = _function(binder, [block], views)
    functions[tvm.ir.GlobalVar(_SIZE)] = _function(_SIZE, [], _number(len(weights.block)))
    return tvm.IRModule(functions), weights


class _Lifted:
    """The constants of one function, and the arguments that have taken their places."""

    def __init__(self, weights: Weights) -> None:
        self.arguments: dict[Place, relax.Var] = {}
        self._weights = weights

    def argument(self, constant: Any) -> Any:
        """The argument for a tensor; any other constant itself."""
        if not isinstance(constant.ty, relax.TensorType):
            return constant
        values = constant.value.numpy()
        # Where all were empty, so would be the block, and nothing could be mapped.
        offset = self._weights.place(values.tobytes() or b"\0")
        place = Place(offset, values.shape, str(constant.ty.dtype))
        fresh = relax.Var(f"w{len(self.arguments)}", constant.ty)
        return self.arguments.setdefault(place, fresh)


def _function(name: str, params: list[relax.Var], result: relax.Expr) -> relax.Function:
    builder = relax.BlockBuilder()
    with builder.function(name, params, attrs={"global_symbol": name}, pure=False):
        builder.emit_func_output(result)
    return builder.get()[name]


def _view(block: relax.Var, place: Place) -> relax.Expr:
    """A tensor in the block, its data where it begins: kernels read from no offset."""
    dtype = tvm.ir.GenericConst(tvm.DataType(place.dtype), relax.AnyType())
    where = [relax.ShapeExpr(place.shape), dtype, _number(place.offset)]
    view = _call("runtime.TVMTensorCreateView", block, *where)
    return _call("vm.builtin.ensure_zero_offset", view)


def _call(name: str, *arguments: relax.Expr) -> relax.Expr:
    return relax.Call(relax.ExternFunc(name), arguments, ty_args=[relax.ObjectType()])


def _number(value: int) -> relax.Expr:
    return tvm.tirx.IntImm("int64", value)
