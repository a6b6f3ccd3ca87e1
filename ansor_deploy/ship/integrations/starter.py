"""A first C program, which runs a model once through the typed call of the library's header."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..outputs.c_header import Words, prefix, tensors

if TYPE_CHECKING:
    from ..manifest import Interface

_TEXT = """\
/* Runs a model once, on zeros, and prints the first numbers of each output. */
#include <stdio.h>

#include "{stem}.h" /* written with the library: sizes, and a typed call */

#ifndef LIBRARY /* where it lies; the build says so */
#define LIBRARY "{stem}.so"
#endif
#define SHOWN 4

{arrays}
int main(int argc, char **argv) {{
    ansor_deploy_model *model = {name}_load(argc > 1 ? argv[1] : LIBRARY);
    if (model == NULL || {name}_run(model{arguments}) != 0) {{
        fprintf(stderr, "%s\\n", ansor_deploy_last_error());
        return 1;
    }}
{prints}    ansor_deploy_free(model);
    return 0;
}}
"""
_ARRAY = "static {c_type} {name}[{constant}];\n"
_PRINT = """\
    for (size_t at = 0; at < {constant} && at < SHOWN; at++)
        printf("{name}[%d] = {format}\\n", (int)at, ({as_type}){name}[at]);
"""


def program(stem: str, interface: Interface) -> str:
    """The text of app.c. stem: the library's name without .so. interface: the model's."""
    name = prefix(stem)
    inputs = tensors(name, "in", interface.inputs)
    outputs = tensors(name, "out", interface.outputs)
    return _TEXT.format(
        stem=stem,
        name=name,
        arrays="".join(map(_ARRAY.format_map, inputs + outputs)),
        arguments="".join(f", {one['name']}" for one in inputs + outputs),
        prints="".join(map(_print, outputs)),
    )


def _print(tensor: Words) -> str:
    real = tensor["c_type"] in ("float", "double")
    shown = ("%g", "double") if real else ("%lld", "long long")
    return _PRINT.format(**tensor, format=shown[0], as_type=shown[1])
