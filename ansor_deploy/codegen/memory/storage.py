"""Place the tensors of a run: results in the caller's memory, all others in one arena.

    main(x):                           main_into(x, y, a0):
        a = alloc_tensor(...)
        kernel_a(x, a)                     kernel_a(x, a0)
        b = reshape(a, ...)        -->
        y = alloc_tensor(...)
        kernel_b(b, y)                     kernel_b(a1, y)
        return y

The last kernels write directly into the caller's outputs. Views of the arena are made once, when a
library is loaded, and bound like weights (`weights.py`): a run allocates nothing, and the virtual
machine only calls kernels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..._tvm import collect, op_name, relax, shape_of, structural_map
from ...runtime.tensors import tensor_bytes
from .arena import Life, plan

_STORAGE, _TENSOR = "relax.vm.alloc_storage", "relax.vm.alloc_tensor"
RESHAPE = "vm.builtin.reshape"
COPY = "runtime.TVMTensorCopyFromTo"


@dataclass(frozen=True)
class Slot:
    """A tensor in a block of memory: its offset in bytes, and its type."""

    offset: int
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Stored:
    """A function that allocates nothing: `main_into(inputs, outputs, views)`.

    inputs, outputs: variables of the caller's tensors. views: the views of the arena, each with the
    variable that stands for it. lives: when the tensors in the arena are alive, by their variables.
    size: bytes of the arena.
    """

    inputs: tuple[relax.Var, ...]
    outputs: tuple[relax.Var, ...]
    views: dict[Slot, relax.Var]
    lives: dict[relax.Var, Life]
    size: int
    body: relax.Expr


def stored(func: relax.Function) -> Stored:
    """Place the tensors of a lowered function that still allocates each of them by itself."""
    read = _Reader(func)
    outputs, results, copies = _outputs(read)
    lives = {var: life for var, life in read.lives.items() if var not in results}
    offsets, size = plan(list(lives.values()))
    write = _Writer(read, results, dict(zip(lives, offsets, strict=True)))
    body = write.body(func.body, copies)
    return Stored(tuple(func.params), tuple(outputs), write.views, lives, size, body)


class _Reader:
    """A function's variables, and when its tensors are alive.

    values: the expression that a variable is bound to. lives: when each allocated tensor is alive,
    in steps. result: what the function returns.
    """

    def __init__(self, func: relax.Function) -> None:
        self.values: dict[relax.Var, relax.Expr] = {}
        self.lives: dict[relax.Var, Life] = {}
        self._within: dict[relax.Var, frozenset[relax.Var]] = {}
        self._step = 0
        self._sequence(func.body)
        self.result = self.resolved(func.body.body)
        self._use(self.result)

    def resolved(self, expr: relax.Expr) -> relax.Expr:
        """The expression that a variable stands for: a tensor, or a tuple of tensors."""
        value = self.values.get(expr)
        if isinstance(value, relax.Var | relax.Tuple):
            return self.resolved(value)
        if isinstance(value, relax.TupleGetItem):
            whole = self.resolved(value.tuple_value)
            if isinstance(whole, relax.Tuple):
                return self.resolved(whole.fields[value.index])
        return expr

    def base(self, expr: relax.Expr) -> relax.Expr:
        """The tensor that an expression is, or is a view of."""
        expr = self.resolved(expr)
        value = self.values.get(expr)
        if value is not None and is_call(value, RESHAPE):
            return self.base(value.args[0])
        return expr

    def _sequence(self, body: relax.SeqExpr) -> None:
        for block in body.blocks:
            for binding in block.bindings:
                self._binding(binding.var, binding.value)

    def _binding(self, var: relax.Var, value: relax.Expr) -> None:
        if isinstance(value, relax.If):
            self._sequence(value.true_branch)
            self._sequence(value.false_branch)
        self._step += 1
        self.values[var] = value
        if op_name(value) == _TENSOR:
            self.lives[var] = Life(bytes_of(var.ty), self._step + 1, self._step)  # until it is used
            self._within[var] = frozenset([var])
        else:
            self._within[var] = self._use(value)

    def _use(self, value: relax.Expr) -> frozenset[relax.Var]:
        """Keep the tensors alive until now that an expression reads; these may be behind views."""
        variables = collect(value, relax.Var)
        used = frozenset().union(*(self._within.get(var, frozenset()) for var in variables))
        for var in used:
            life = self.lives[var]
            self.lives[var] = Life(life.size, min(life.first, self._step), self._step)
        return used


class _Writer:
    """Rewrites a function's body, with variables for the places of tensors.

    views: the views of the arena, each with its variable.
    """

    def __init__(
        self, read: _Reader, results: dict[relax.Var, relax.Var], offsets: dict[relax.Var, int]
    ) -> None:
        self.views: dict[Slot, relax.Var] = {}
        self._read, self._results, self._offsets = read, results, offsets
        self._reshaped: dict[tuple[relax.Var, tuple[int, ...]], relax.Var] = {}

    def body(self, body: relax.SeqExpr, copies: Sequence[relax.Binding]) -> relax.SeqExpr:
        """The body of a function without a result, which ends with copies."""
        bindings = self._bindings(body) + [self._binding(one) for one in copies]
        views = [_view(result, var) for (result, _), var in self._reshaped.items()]
        return relax.SeqExpr([relax.BindingBlock([*views, *bindings])], relax.Tuple([]))

    def _bindings(self, body: relax.SeqExpr) -> list[relax.Binding]:
        every = [one for block in body.blocks for one in block.bindings]
        return [self._binding(one) for one in every if not self._is_place(one)]

    def _is_place(self, binding: relax.Binding) -> bool:
        """Whether a binding only allocates, views or renames a tensor, and is no longer needed."""
        value = binding.value
        if op_name(value) == _STORAGE:
            return True
        if op_name(value) == _TENSOR or is_call(value, RESHAPE):
            return self._known(self._read.base(binding.var))
        return not self._read.resolved(binding.var).same_as(binding.var)

    def _known(self, base: relax.Expr) -> bool:
        return base in self._results or base in self._offsets

    def _binding(self, binding: relax.Binding) -> relax.Binding:
        value = binding.value
        if not isinstance(value, relax.If):
            return relax.VarBinding(binding.var, structural_map(value, (relax.Var, self._placed)))
        branches = map(self._branch, (value.true_branch, value.false_branch))
        return relax.VarBinding(binding.var, relax.If(self._placed(value.cond), *branches))

    def _branch(self, body: relax.SeqExpr) -> relax.SeqExpr:
        result = structural_map(body.body, (relax.Var, self._placed))
        return relax.SeqExpr([relax.BindingBlock(self._bindings(body))], result)

    def _placed(self, var: relax.Var) -> relax.Expr:
        """The variable of a tensor's place; for anything without a place, its own expression."""
        one = self._read.resolved(var)
        if isinstance(one, relax.Tuple):
            return structural_map(one, (relax.Var, self._placed))
        base = self._read.base(one)
        if not self._known(base):
            return one
        shape = shape_of(var.ty)
        if base in self._results:
            return self._result(self._results[base], shape, var)
        place = Slot(self._offsets[base], shape, str(var.ty.dtype))
        return self.views.setdefault(place, relax.Var(f"a{len(self.views)}", var.ty))

    def _result(self, result: relax.Var, shape: tuple[int, ...], var: relax.Var) -> relax.Var:
        if shape_of(result.ty) == shape:
            return result
        return self._reshaped.setdefault((result, shape), relax.Var("reshaped", var.ty))


def _outputs(
    read: _Reader,
) -> tuple[list[relax.Var], dict[relax.Var, relax.Var], list[relax.Binding]]:
    """Variables of the outputs; those that replace a tensor, by that tensor; copies to the others.

    An output is copied if it is also an input, a constant, or another output.
    """
    result = read.result
    fields = list(result.fields) if isinstance(result, relax.Tuple) else [result]
    outputs = [relax.Var(f"out{at}", field.ty) for at, field in enumerate(fields)]
    taken: dict[relax.Var, relax.Var] = {}
    copies: list[relax.Binding] = []
    for field, output in zip(fields, outputs, strict=True):
        base = read.base(field)
        if base in read.lives and base not in taken:
            taken[base] = output
        else:
            nothing = relax.Var("_", relax.TupleType([]))
            copies.append(relax.VarBinding(nothing, call(COPY, field, output)))
    return outputs, taken, copies


def _view(result: relax.Var, var: relax.Var) -> relax.Binding:
    shape = relax.ShapeExpr(shape_of(var.ty))
    return relax.VarBinding(var, call(RESHAPE, result, shape, kind=var.ty))


def bytes_of(tensor: Any) -> int:
    """Bytes of a tensor. tensor: a buffer, or a tensor's type."""
    return tensor_bytes(shape_of(tensor), str(tensor.dtype))


def is_call(value: relax.Expr, name: str) -> bool:
    """Whether an expression calls this function of TVM's runtime."""
    op = getattr(value, "op", None)
    return isinstance(op, relax.ExternFunc) and op.global_symbol == name


def call(name: str, *arguments: relax.Expr, kind: Any = None) -> relax.Expr:
    """A call of a function of TVM's runtime. kind: the type of its result."""
    return relax.Call(relax.ExternFunc(name), arguments, ty_args=[kind or relax.ObjectType()])
