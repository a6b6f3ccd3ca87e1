"""The canonical, name-free text of a program: what a task's key is the hash of.

TVMScript is Python, so names are replaced on its syntax tree: every variable, buffer and block
is called after the order of its first appearance. Shapes, dtypes, constants, attributes and
structure stay. The text can be parsed again, which gives the program that tuning works on: its
block names are the canonical ones, so a trace recorded for one program replays on every equal
one, whatever its front end called the blocks.
"""

import ast
from typing import Any

from .._tvm import tirx, tvm

# Attributes that say where a program came from, not what it computes.
INCIDENTAL = ("global_symbol", "op_pattern", "target", "tirx.is_scheduled")
# Names that mean something in TVMScript.
KEPT = ("T", "bool", "int", "float", "range", "True", "False", "None", "metadata")


def canonical_text(func: tirx.PrimFunc) -> str:
    """TVMScript of the function under canonical names; equal programs give equal texts."""
    tree = ast.parse(normalized(func).script(show_meta=True))
    renamed = _Rename().visit(tree)
    body = [node for node in renamed.body if isinstance(node, ast.FunctionDef)]
    if len(body) != 1:
        raise ValueError("a program with metadata constants has no canonical text")
    return ast.unparse(body[0]) + "\n"


def normalized(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function without the attributes that are no part of what it computes."""
    for attribute in INCIDENTAL:
        func = func.without_attr(attribute)
    return func.with_attr("global_symbol", "main")


def parse(text: str) -> tvm.IRModule:
    """The module, with one function `main`, of a canonical text.

    The text runs as TVMScript: give only what `canonical_text` made in this process.
    """
    func = tvm.script.from_source(text)
    return tvm.IRModule({"main": func.with_attr("global_symbol", "main")})


class _Rename(ast.NodeTransformer):
    def __init__(self) -> None:
        self.names = {name: name for name in KEPT}
        self.blocks = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.name = "main"
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> Any:
        node.arg = self._name(node.arg)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        node.id = self._name(node.id)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "sblock":
            (name,) = node.args
            if not (isinstance(name, ast.Constant) and name.value == "root"):
                node.args = [ast.Constant(f"b{self.blocks}")]
                self.blocks += 1
            return node
        return self.generic_visit(node)

    def _name(self, name: str) -> str:
        return self.names.setdefault(name, f"v{len(self.names) - len(KEPT)}")
