"""What the names of open axes say of each other: `past + 1`, `2*rows`, `8H`, `total_length`."""

import ast
import operator
import re
from collections.abc import Collection, Mapping

_LONGEST = 100  # characters of a name that is read as a sum; a hostile file may have any
_FACTOR = re.compile(r"^(\d+)([A-Za-z_]\w*)$")  # as diffusers writes twice a batch: 2B
_STEPS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
_ALLOWED = (ast.BinOp, ast.Name, ast.Constant, ast.Load, *_STEPS)


class SizeName:
    """The name of an axis, as a sum of others if it reads like one.

    terms: the names that are to be given sizes.
    """

    def __init__(self, name: str, names: Collection[str]) -> None:
        """names: of all axes. By onnxruntime-genai's builder a total is the past and what comes."""
        rest = name.removeprefix("total_")
        is_total = rest != name and {rest, f"past_{rest}"} <= set(names)
        self._tree = _parsed(f"past_{rest} + {rest}" if is_total else _FACTOR.sub(r"\1*\2", name))
        self.terms = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        self.is_sum = self.terms != {name}

    def value(self, sizes: Mapping[str, int]) -> int:
        """The size, for sizes of all terms; at least 1."""
        return max(1, _value(self._tree, sizes))

    def solved(self, term: str, wanted: int, sizes: Mapping[str, int]) -> int:
        """The least size of one term for which the whole is as large as is wanted."""
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
