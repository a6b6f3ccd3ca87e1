"""Trying a library: it runs on its machine, under an emulator, or a stand-in of it does."""

from __future__ import annotations

from dataclasses import replace as replaced
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...devices.bare import open_bare
from ...devices.emulator import open_emulator
from ...devices.machine import Machine, has_instructions, runs_here
from ...errors import VerificationError
from ...system.jobserver import threads
from ..manifest import UNTRIED, UNVERIFIED, Allowed, Draft, Verified
from .oracle import Oracle
from .stand_in import is_small, make_stand_in
from .verify import Library, Runnable, verify_model
from .wrong_numbers import refusal, wrong_outputs

if TYPE_CHECKING:
    from ..shipment import Shipment


def tried(made: Shipment, path: Path, draft: Draft) -> Draft:
    """The manifest of a library that no machine runs, with what its numbers say.

    VerificationError where they are wrong.
    """
    if made.locked is not None:
        return _of_lock(made, path, draft)
    return _each_code(made, path, draft) if made.others else _elsewhere(made, path, draft)


def tried_on(made: Shipment, draft: Draft, library: Library, machine: Machine) -> Draft:
    """As `tried`, of a library on the machine that runs it."""
    where = f"device {machine.name}" if machine.sites else "native"
    draft = replace(_verified(made, draft, library, where), ran_on=machine.name)
    return _each_code(made, library.path, draft) if made.others else draft


def _of_lock(made: Shipment, path: Path, draft: Draft) -> Draft:
    """Of a frozen build: its manifest is the same on every machine, and says not where."""
    request = made.request
    if not request.verify:
        return draft
    with threads(request.target.cores) as width:
        oracles = [Oracle(proto, width) for proto in made.model.protos]
        made = replaced(made, oracles=oracles)
        # Numbers do not hang on the other cores.
        if runs_here(replaced(request.target, cores=1)):
            with open_bare() as bare:
                _verified(made, draft, bare.load(path, draft.to_json(), width), "native")
        else:
            _elsewhere(made, path, draft, width)
    return replace(draft, verification=_said(made, None))


def _each_code(made: Shipment, path: Path, draft: Draft) -> Draft:
    """With what the numbers of each code say, as far as this processor runs them.

    The request's own is not run again if it was before. Where none runs, a stand-in does.
    """
    said, known = list[Verified](), draft
    for at, one in enumerate(made.codes):
        found = replace(draft, verification=UNTRIED if made.oracles else UNVERIFIED)
        if one is made and draft.ran_on:
            found = draft
        elif made.oracles and has_instructions(one.target):
            with threads(one.target.cores) as width, open_bare() as bare:
                there = bare.load(path, draft.to_json(), width, at)
                found = _verified(made, draft, there, "native")
        said.append(found.verification)
        known = found if one is made else known
    if made.oracles and not any(one.verified for one in said):
        known = _elsewhere(made, path, draft)
        said = [known.verification if one is made else UNTRIED for one in made.codes]
    codes = zip(draft.codes or (), said, strict=True)
    return replace(known, codes=tuple(replace(one, verification=where) for one, where in codes))


def _elsewhere(made: Shipment, path: Path, draft: Draft, width: int = 0) -> Draft:
    """Under an emulator; where that would take too long, or there is none, by a stand-in.

    width: threads that this may take; 0 for all.
    """
    if not made.oracles:
        return draft
    if is_small(made.model):
        with open_emulator(made.target) as emulator:
            if emulator is not None:
                library = emulator.load(path, draft.to_json())
                return _verified(made, draft, library, f"under {emulator.name}")
    made.report.stage("stand-in", "the same import, untuned, for this machine")
    beside, step = path.with_name("stand-in.so"), partial(made.report.step, "kernels")
    with open_bare() as bare:
        words = (draft, made.precision, bare, width, step)
        stand_in = make_stand_in(made.model, beside, *words)
        return _verified(made, draft, stand_in, "this machine, untuned")


def _verified(made: Shipment, draft: Draft, library: Runnable, where: str) -> Draft:
    """With what the numbers say. where: the library runs."""
    if not made.oracles:
        return draft
    request = made.request
    made.report.stage("verify", "against ONNX Runtime on seeded inputs")
    found = verify_model(library, made.oracles, request.seed, dict(request.tolerances))
    made.report.verified(found)
    if not found.ok:
        if made.rewritten and not made.strict:  # it is built anew
            raise VerificationError(wrong_outputs(found))
        raise refusal(made, found)
    return replace(draft, verify=found.errors, verification=_said(made, where))


def _said(made: Shipment, where: str | None) -> Verified:
    allowed = {name: Allowed(one.rtol, one.atol) for name, one in made.request.tolerances}
    return Verified(verified=True, where=where, reason=None, allowed=allowed)
