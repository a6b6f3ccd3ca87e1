"""Open axes whose names are formulas of other names: `past + 1`, `2*rows`, `total_length`."""

import ast
import operator
import re
from collections.abc import Collection, Mapping

_LONGEST = 100  # the most characters of a name that is parsed; a hostile file may have any
_FACTOR = re.compile(r"^(\d+)([A-Za-z_]\w*)$")  # diffusers writes twice a batch so: 2B
_STEPS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
_ALLOWED = (ast.BinOp, ast.Name, ast.Constant, ast.Load, *_STEPS)


class SizeName:
    """The name of an axis, parsed as a sum of other names if it reads like one.

    terms: the names that need sizes.
    """

    def __init__(self, name: str, names: Collection[str]) -> None:
        """names: of all axes.

        In files of onnxruntime-genai, `total_x` is the sum of `past_x` and `x`.
        """
        rest = name.removeprefix("total_")
        is_total = rest != name and {rest, f"past_{rest}"} <= set(names)
        self._tree = _parsed(f"past_{rest} + {rest}" if is_total else _FACTOR.sub(r"\1*\2", name))
        self.terms = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        self.is_sum = self.terms != {name}

    def value(self, sizes: Mapping[str, int]) -> int:
        """The size that follows from sizes of all terms; at least 1."""
        return max(1, _value(self._tree, sizes))

    def solved(self, term: str, wanted: int, sizes: Mapping[str, int]) -> int:
        """The least size of one term with which the whole is at least `wanted`."""
        fits = (n for n in range(1, wanted) if self.value({**sizes, term: n}) >= wanted)
        return next(fits, wanted)


def _parsed(name: str) -> ast.expr:
    try:
        tree = ast.parse(name if len(name) <= _LONGEST else "", mode="eval").body
    except (SyntaxError, ValueError):
        return ast.Name(name)
    parts = list(ast.walk(tree))
    whole = all(isinstance(part.value, int) for part in parts if isinstance(part, ast.Constant))
    return tree if whole and all(isinstance(part, _ALLOWED) for part in parts) else ast.Name(name)


def _value(tree: ast.AST, sizes: Mapping[str, int]) -> int:
    if isinstance(tree, ast.Name):
        return sizes[tree.id]
    if isinstance(tree, ast.BinOp):
        return int(_STEPS[type(tree.op)](_value(tree.left, sizes), _value(tree.right, sizes)))
    return int(ast.literal_eval(tree))
