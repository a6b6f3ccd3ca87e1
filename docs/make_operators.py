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

This page lists every ONNX operator that can be compiled. A model with another operator, or beyond a
limit, is refused at once (exit 3), and the message names its nodes. `docs/make_operators.py` writes
the page from `ansor_deploy/model/operators/`: change the entry there, and run it.

**Shapes** are static: they follow from the shapes of the model's inputs. Values that they depend on
must be constant after folding. If a run decides how large a tensor is, as with NonZero and
NonMaxSuppression, the tensor has room for the largest possible size. A size that a run computes and
nothing bounds, such as the frames of a sentence that a model speaks, has room for 1024, or for 8
for each number (token) that it is the sum of. A run that needs more fails, and seeded inputs that
do are not verified.

**Types:** *real* is {real}; *integers* are {integer}; *numbers* are both; *any* is numbers and
bool. Strings, complex numbers, types below a byte, and sequences as inputs or outputs of the model
are refused. [Edge values](edge_values.md) says what happens to NaN and infinities.

**Random numbers.** If a model draws random numbers (Bernoulli, Multinomial, RandomNormal,
RandomUniform and the like), its library has one more input, `seed`, an int64 number. Equal seeds
give equal numbers. Give another seed in each run, or build with `--input-shape seed==1` for the
same numbers in all runs. Seeds in the file's nodes are not used.

**16-bit floats.** float16 and bfloat16 are computed in float32, and rounded where values leave a
kernel. Weights keep their 16 bits in the library and become float32 where they are loaded, if the
processor can convert them (x86 without F16C cannot convert float16). Weights that Winograd's
algorithm transforms are float32; `--precision strict` avoids it.

**Weights of few bits.** A matrix that DequantizeLinear scales by blocks or lines, or that of a
MatMulNBits, takes a byte for each weight, and the scales, if a byte can hold all steps from the
zero point. A 4-bit weight takes half a byte if at most eight rows are multiplied by it, or if
`accuracy_level` allows rows of bytes, which are rounded in blocks as in ONNX Runtime.

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
