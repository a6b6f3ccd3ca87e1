"""The codes of a library: one for each of its targets, with their kernels and their records.

They are linked into one file, with equal weights once, and who loads it runs the first that the
processor can. Each is verified where this machine's processor runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..codegen.model import Compiled, compile_model, export_codes
from ..devices.bare import open_bare
from ..devices.machine import has_instructions
from ..space.rule import rule_set
from ..system.jobserver import threads
from .describe import described
from .limits import check_limits
from .manifest import Code, Draft, Verified
from .result import UNTRIED, UNVERIFIED

if TYPE_CHECKING:
    from ..codegen.weights import Weights
    from .assemble import Assembly, Records
    from .verify.verify import Oracle


def in_order(own: Assembly) -> list[Assembly]:
    """One for each code, the most demanding first."""
    if not own.others:
        return [own]
    of_target = {one.target.fingerprint: one for one in (own, *own.others)}
    return [of_target[target.fingerprint] for target in own.request.codes]


def write_codes(path: Path, own: Assembly, records: Records) -> list[Code]:
    """Write a library: what its manifest says of its codes. records: of the request's own."""
    codes, built = in_order(own), list[Compiled]()
    for at, one in enumerate(codes):
        over = built[-1].weights if built else None
        built.append(_compiled(one, records if one is own else one.records, at, over))
        own.rewritten.update(built[-1].rewritings)
    memory = export_codes(built, path, [one.target for one in codes])
    for taken in memory:
        check_limits(taken, own.request.limits, own.model.path)
    return [described(*words) for words in zip(codes, built, memory, strict=True)]


def _compiled(one: Assembly, records: Records, code: int, others: Weights | None) -> Compiled:
    rules = rule_set(one.request.rules, one.target.kind, one.precision)
    chosen = {key: loan.schedule for key, loan in one.loans.items()} | {**records}
    words = (chosen, one.target, rules, one.warn, partial(one.report.step, "kernels"))
    return compile_model(one.model.imported, one.model.by_function, *words, code, others)


def try_codes(own: Assembly, path: Path, draft: Draft, oracles: Sequence[Oracle]) -> Draft:
    """A manifest with what the numbers of each code say, as far as this processor runs them.

    The request's own is not run again if it was before. Where none runs, a stand-in does.
    """
    said, known = list[Verified](), draft
    for at, one in enumerate(in_order(own)):
        mine, untried = one is own, UNTRIED if oracles else UNVERIFIED
        found = replace(draft, verification=untried)
        if mine and draft.ran_on:
            found = draft
        elif oracles and has_instructions(one.target):
            with threads(one.target.cores) as width, open_bare() as bare:
                there = bare.load(path, draft.to_json(), width, at)
                found = own.verify(draft, there, oracles, "native")
        said.append(found.verification)
        known = found if mine else known
    if oracles and not any(one.verified for one in said):
        known = own.try_elsewhere(path, draft, oracles)
        said = [known.verification if one is own else UNTRIED for one in in_order(own)]
    codes = zip(draft.codes or (), said, strict=True)
    return replace(known, codes=tuple(replace(one, verification=where) for one, where in codes))
