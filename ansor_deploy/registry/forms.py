"""The forms that fields of others' records must have: texts, numbers and lists within bounds."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..system.checks import Check, integer, list_of, number, text
from ..system.run_times import CALL_SECONDS, SLOWEST
from ..system.untrusted import exactly, quoted, refuse

MOST_TEXT = 262_144  # characters of a workload's program
MOST_REPEATS = 10_000  # times of one record
MOST_TENSORS = 256
MOST_NAME = 60  # characters of a rule's name
MOST_RULES = 64  # rules that lead to one program
MOST_WORK = 1e18  # operations or bytes of one run
WORST_ERROR = 0.1  # relative; no check of outputs accepts a larger one

# The tokens that a canonical program text consists of: see space/canonical_text.py.
_PARTS = (
    r"@?T(?:\.[A-Za-z]\w*)+|v\d+(?:\.\w+)?\b|'[\w.]*'|\d+(?:\.\d+)?(?:e[+-]?\d+)?\b"
    r"|[a-z_]\w*=(?!=)|[()\[\]{},:*+\-/%<>=!&|~^ \n]"
    r"|\b(?:def|main|for|in|with|if|else|not|and|or|True|False|None|range|while|return)\b"
)
_TEXT_START = "@T.prim_func"
_DTYPE = r"(bool|handle|bfloat16|u?int|float)[0-9a-z_]{0,20}"


@dataclass(frozen=True)
class Form:
    """The form of a value from outside. wrong: the message for a value that does not have it.

    late: the value may be missing, as in files of earlier versions.
    """

    fits: Check
    wrong: str = "{name} {value} is not of the form that this tool writes"
    late: bool = False


Forms = Mapping[str, "Form | Forms"]


def check(data: Any, forms: Forms) -> None:
    """Refused unless the data is an object with exactly these fields, each of its form."""
    given = data if isinstance(data, dict) else {}
    asked = {part: form for part, form in forms.items() if part in given or not _is_late(form)}
    exactly(data, *asked)
    for part, form in asked.items():
        if isinstance(form, Form):
            wrong = form.wrong.format(name=part, value=quoted(data[part]))
            refuse(not form.fits(data[part]), wrong)
        else:
            check(data[part], form)


def _is_late(form: Form | Forms) -> bool:
    return isinstance(form, Form) and form.late


def check_program(text: str) -> None:
    """Refused unless the text consists of the tokens of canonical program texts alone."""
    begins = text.startswith(_TEXT_START) and len(text) <= MOST_TEXT
    left = re.sub(_PARTS, "", text) if begins else "all of it"
    refuse(left, f"workload: no canonical program text: {quoted(left[:20])}")


DIGEST = Form(text(r"[0-9a-f]{64}"))
VERSION = Form(text(r"[0-9][0-9A-Za-z.+-]{0,39}"))
WORD = Form(text(r"[a-z][a-z0-9_-]{0,60}"))
REASON = Form(text(r"[a-z][a-z0-9 ]{0,60}"))
TIME = Form(text(r"20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\+00:00|Z)"))
COUNT = Form(integer(0, 2**53))
SEED = Form(integer(0, 2**63))
WORK = Form(number(0, MOST_WORK, types=(float,)))
SHAPES = Form(list_of(list_of(COUNT.fits, 0, 64), 0, MOST_TENSORS))
DTYPES = Form(list_of(text(_DTYPE), 0, MOST_TENSORS))
PROGRAM = TRACE = Form(lambda value: isinstance(value, str), "the {name} is no text")
_TIME = number(CALL_SECONDS, SLOWEST, types=(float,))
TIMES = Form(list_of(_TIME, 1, MOST_REPEATS), "record: times {value} are not those of a run")
_PROVES = "record: {name} {value} proves nothing"
PROOF: Forms = {
    "oracle": Form(lambda value: value in ("default", "plain"), _PROVES),
    "seed": Form(SEED.fits, _PROVES),
    "max_abs_err": Form(number(0, 1e300), _PROVES),
    "max_rel_err": Form(number(0, WORST_ERROR), _PROVES),
}


def _rule_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MOST_NAME and value.isprintable()


PROVENANCE: Forms = {
    "tool": VERSION,
    "tvm": VERSION,
    "search": WORD,
    "device": Form(text(r"(?!.*\.\.)[A-Za-z0-9._:@-]{0,100}")),  # no path
    "seed": SEED,
    "created": TIME,
    "rules": Form(text(r"|[0-9a-f]{64}")),
    "derived_by": Form(list_of(_rule_name, 1, MOST_RULES), late=True),
    "clock": Form(integer(1, 100_000), late=True),
}
