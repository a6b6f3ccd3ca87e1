"""The codes of a library: one for each of its targets, with their kernels and their records.

They are linked into one file, with equal weights once, and who loads it runs the first that the
processor can. Each is verified where this machine's processor runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..codegen.model import Compiled, compile_model, export_codes
from ..devices.bare import open_bare
from ..devices.machine import has_instructions
from ..space.rule import rule_set
from ..system.jobserver import threads
from .limits import check_limits
from .result import UNTRIED, UNVERIFIED

if TYPE_CHECKING:
    from ..codegen.memory import Memory
    from ..codegen.weights import Weights
    from ..target import Target
    from .assemble import Assembly, Records
    from .verify import Oracle


def in_order(own: Assembly) -> list[Assembly]:
    """One for each code, the most demanding first."""
    if not own.others:
        return [own]
    of_target = {one.target.fingerprint: one for one in (own, *own.others)}
    return [of_target[target.fingerprint] for target in own.request.codes]


def write_codes(path: Path, own: Assembly, records: Records) -> dict[str, Any]:
    """Write a library: what its manifest says of it. records: those of the request's own code."""
    codes, built = in_order(own), list[Compiled]()
    for at, one in enumerate(codes):
        over = built[-1].weights if built else None
        built.append(_compiled(one, records if one is own else one.records, at, over))
        own.rewritten.update(built[-1].rewritings)
    known = []
    memory = export_codes(built, path, [one.target for one in codes])
    for one, code, taken in zip(codes, built, memory, strict=True):
        check_limits(taken, own.request.limits, own.model.path)
        known.append(_listed(one, code, taken))
    if not own.others:
        return known[0]
    targets = [{"target": described(one.target), "lenders": one.lent} for one in codes]
    every = [{**target, **said} for target, said in zip(targets, known, strict=True)]
    mine = next(said for one, said in zip(codes, known, strict=True) if one is own)
    return {**mine, "codes": every}


def _compiled(one: Assembly, records: Records, code: int, others: Weights | None) -> Compiled:
    rules = rule_set(one.request.rules, one.target.kind, one.precision)
    chosen = {key: loan.schedule for key, loan in one.loans.items()} | {**records}
    words = (chosen, one.target, rules, one.warn, partial(one.report.step, "kernels"))
    return compile_model(one.model.imported, one.model.by_function, *words, code, others)


def _listed(one: Assembly, built: Compiled, memory: Memory) -> dict[str, Any]:
    return {
        "memory": memory.figures(),
        "tasks": one.listed_tasks(built),
        "kernels": built.listed(),
        "others": built.placed(one.model.others),
    }


def try_codes(
    own: Assembly, path: Path, manifest: dict[str, Any], oracles: Sequence[Oracle]
) -> dict[str, Any]:
    """What a manifest says of the numbers of each code, as far as this processor runs them.

    The request's own is not run again if it was before. Where none runs, a stand-in does.
    """
    said, known = list[Any](), dict[str, Any]()
    for at, one in enumerate(in_order(own)):
        mine, untried = one is own, UNTRIED if oracles else UNVERIFIED
        found: dict[str, Any] = {"verification": untried}
        if mine and manifest["ran_on"]:
            found = {"verification": manifest["verification"]}
        elif oracles and has_instructions(one.target):
            with threads(one.target.cores) as width, open_bare() as bare:
                found = own.verify(bare.load(path, manifest, width, at), oracles, "native")
        said.append(found["verification"])
        known = found if mine else known
    if oracles and not any(one["verified"] for one in said):
        known = own.try_elsewhere(path, manifest, oracles)
        said = [known["verification"] if one is own else UNTRIED for one in in_order(own)]
    codes = zip(manifest["codes"], said, strict=True)
    return {**known, "codes": [{**one, "verification": where} for one, where in codes]}


def described(target: Target) -> dict[str, Any]:
    """A target as a manifest has it."""
    return {**target.to_json(), "fingerprint": target.fingerprint}
