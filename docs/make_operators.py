"""Write docs/operators.md from the table of operators, or with --check say whether it is stale."""

from __future__ import annotations

import sys
from pathlib import Path

from ansor_deploy.model.graph.graph import OWN
from ansor_deploy.model.operators import coupling
from ansor_deploy.model.operators.operator import ANY, INTEGER, REAL, Operator
from ansor_deploy.model.operators.refused import DOMAINS, REASONS
from ansor_deploy.model.operators.table import OPERATORS

PAGE = Path(__file__).with_name("operators.md")
GROUPS = (("any", ANY), ("integers", INTEGER), ("real", REAL), ("numbers", REAL | INTEGER))
OURS = (  # in no file
    *(operator for operator in OPERATORS.values() if operator.domain == OWN),
    *coupling.OPERATORS,
)
PREFACE = """\
# Operators

Every ONNX operator that can be compiled. A model with any other, or one beyond a limit, is refused
by name (exit 3) before anything else is done. Written by `docs/make_operators.py` from
`ansor_deploy/model/operators/`: change the entry there and run `python docs/make_operators.py`.

Shapes are static: they follow from the shapes of the model's inputs, and the values that they
depend on must be constants once all that is constant is folded. Where a run decides how large a
tensor is, as with NonZero and NonMaxSuppression, it has room for the most that there can be: so
sizes that are computed need a bound.

Types: *real* is {real}; *integers* are {integer}; *numbers* are both; *any* is numbers and bool.
Strings, complex numbers, sequences as inputs or outputs of the model, and types below a byte are
refused. NaN, infinities and the like: [edge values](edge_values.md).

A model that draws random numbers (Bernoulli, Multinomial, RandomNormal, RandomUniform and the like)
has one more input in its library, `seed`, a number of int64: equal seeds draw equal numbers. Give
another one in each run, or build with `--input-shape seed==1` for the same noise in all runs. The
seeds that the file's nodes name are not used.

float16 and bfloat16 are computed in float32, and rounded where values leave a kernel. Weights keep
their 16 bits in the library and are made float32 where they are loaded, if the processor converts
(x86 without F16C does not, of float16). Those that Winograd's algorithm transforms are of float32:
`--precision strict` does without it. Matrices that DequantizeLinear has by blocks or lines, and
those of MatMulNBits, take a byte for each weight and the scales, if bytes hold all steps from the
zero points; half a byte where up to eight rows are multiplied by weights of four bits, or
`accuracy_level` lets rows be bytes: blocks of them are rounded as ONNX Runtime does.

"""


def page() -> str:
    """The whole page."""
    parts = [PREFACE.format(real=", ".join(sorted(REAL)), integer=", ".join(sorted(INTEGER)))]
    known = {key: operator for key, operator in OPERATORS.items() if operator not in OURS}
    for domain in sorted({domain for domain, _ in known}):
        rows = [_row(known[key]) for key in sorted(known) if key[0] == domain]
        parts.append(f"## {domain or 'ai.onnx'}\n\n| operator | opset | types | limits |\n")
        parts.append("|---|---|---|---|\n" + "\n".join(rows) + "\n\n")
    refused = [f"| {name} | {reason} |" for name, reason in sorted(REASONS.items())]
    refused += [f"| all of {name} | {reason} |" for name, reason in sorted(DOMAINS.items())]
    parts.append("## Refused\n\n| operator | because |\n|---|---|\n" + "\n".join(refused) + "\n")
    return "".join(parts)


def _row(operator: Operator) -> str:
    limits = [limit.text for limit in operator.limits]
    if operator.constant:
        limits.append(f"constant: input {', '.join(map(str, operator.constant))}")
    since = f"{operator.since} and later"
    return f"| {operator.name} | {since} | {_types(operator)} | {'; '.join(limits)} |"


def _types(operator: Operator) -> str:
    names = {frozenset(group): name for name, group in GROUPS}
    types = frozenset(operator.types)
    return names.get(types) or ", ".join(sorted(types))


def run(arguments: list[str]) -> str:
    """Write the page, or check it; what is wrong, if anything is."""
    wanted = page()
    if "--check" not in arguments:
        PAGE.write_text(wanted, encoding="utf-8")
        return ""
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == wanted:
        return ""
    return f"{PAGE.name} is not what the code says: run python docs/make_operators.py"


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]) or 0)
