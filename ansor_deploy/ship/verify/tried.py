"""Try a library: on its machine, under an emulator, or by a stand-in for it."""

from __future__ import annotations

from dataclasses import replace as replaced
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...devices.bare import open_bare
from ...devices.emulator import open_emulator
from ...devices.machine import Machine, has_instructions
from ...errors import VerificationError
from ...system.host import detect_host
from ...system.jobserver import threads
from ...system.words import count
from ..islands import islands
from ..manifest import UNTRIED, UNVERIFIED, Allowed, Draft, Verified
from .apart import proved_apart
from .exact import exactly_wrong
from .oracle import oracles_of
from .parts import how_of
from .stand_in import is_small, make_stand_in
from .verify import Library, Runnable, Verification, verify_model
from .wrong_numbers import refusal, wrong_outputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model.graph.places import Place
    from ..shipment import Shipment


def tried(shipment: Shipment, path: Path, draft: Draft) -> Draft:
    """The manifest of a library that no machine runs, with the result of its verification.

    VerificationError where its outputs are wrong.
    """
    if shipment.locked is not None:
        return _of_lock(shipment, path, draft)
    how = _each_code if shipment.others else _elsewhere
    return how(shipment, path, draft)


def tried_on(shipment: Shipment, draft: Draft, library: Library, machine: Machine) -> Draft:
    """As `tried`, for a library on the machine that runs it."""
    where = f"device {machine.name}" if machine.sites else "native"
    draft = replace(_verified(shipment, draft, library, where), ran_on=machine.name)
    return _each_code(shipment, library.path, draft) if shipment.others else draft


def _of_lock(shipment: Shipment, path: Path, draft: Draft) -> Draft:
    """The manifest of a frozen build: it is the same on every machine, so it does not say where."""
    request = shipment.request
    if not request.verify:
        return draft
    with threads(request.target.cores) as width:
        oracles = oracles_of(shipment.model.protos, width)
        _elsewhere(replaced(shipment, oracles=oracles), path, draft, width)
    return replace(draft, verification=_said(shipment, None))


def _each_code(shipment: Shipment, path: Path, draft: Draft) -> Draft:
    """The manifest with the verification of each code that this processor can run.

    The request's own code is not run again if it ran before. Where none can run, a stand-in does.
    """
    said, known = list[Verified](), draft
    for at, code in enumerate(shipment.codes):
        verified = replace(draft, verification=UNTRIED if shipment.oracles else UNVERIFIED)
        if code is shipment and draft.ran_on:
            verified = draft
        elif shipment.oracles and has_instructions(code.target):
            with threads(code.target.cores) as width, open_bare() as bare:
                there = bare.load(path, draft.to_json(), width, at)
                verified = _verified(shipment, draft, there, "native")
        said.append(verified.verification)
        known = verified if code is shipment else known
    if shipment.oracles and not any(one.verified for one in said):
        known = _elsewhere(shipment, path, draft)
        said = [known.verification if code is shipment else UNTRIED for code in shipment.codes]
    codes = zip(draft.codes or (), said, strict=True)
    return replace(known, codes=tuple(replace(one, verification=where) for one, where in codes))


def _elsewhere(shipment: Shipment, path: Path, draft: Draft, width: int = 0) -> Draft:
    """The manifest with a verification on this machine, under an emulator, or by a stand-in.

    This processor runs it if it can, perhaps on fewer cores, since outputs do not depend on these.
    Otherwise an emulator does; a stand-in runs where that would take too long, or there is none.
    width: how many threads this may take; 0 for all.
    """
    if not shipment.oracles:
        return draft
    if has_instructions(shipment.target):
        with open_bare() as bare:
            width = width or min(shipment.target.cores, detect_host()["cores"])
            return _verified(shipment, draft, bare.load(path, draft.to_json(), width), "native")
    if is_small(shipment.model):
        with open_emulator(shipment.target) as emulator:
            if emulator is not None:
                library = emulator.load(path, draft.to_json())
                return _verified(shipment, draft, library, f"under {emulator.name}")
    shipment.report.stage("stand-in", "the same import, untuned, for this machine")
    beside, step = path.with_name("stand-in.so"), partial(shipment.report.step, "kernels")
    with open_bare() as bare:
        words = (draft, shipment.precision, bare, width, step)
        stand_in = make_stand_in(shipment.model, beside, *words)
        return _verified(shipment, draft, stand_in, "this machine, untuned")


def _verified(shipment: Shipment, draft: Draft, library: Runnable, where: str) -> Draft:
    """The manifest with the result of the verification. where: on what the library runs."""
    if not shipment.oracles:
        return draft
    request = shipment.request
    shipment.report.stage("verify", "against ONNX Runtime on seeded inputs")
    open_places = islands(shipment.model, shipment.target)
    words = (request.seed, dict(request.tolerances), open_places)
    verdict = verify_model(library, shipment.oracles, *words)
    if verdict.ok and open_places and where == "native":
        verdict = _with_rest(shipment, verdict, open_places)
    shipment.report.verified(verdict)
    if not verdict.ok:
        if shipment.rewritten and not shipment.strict:  # the build is repeated without rewriting
            raise VerificationError(wrong_outputs(verdict))
        raise refusal(shipment, verdict)
    return replace(draft, verify=verdict.errors, verification=_said(shipment, where))


def _with_rest(shipment: Shipment, verdict: Verification, places: Sequence[Place]) -> Verification:
    """The verification with a proof of the network's integers outside these places of floats."""
    floats = count(len(places), "place")
    shipment.report.stage("prove", f"bit for bit, what {floats} of floats read")
    found = proved_apart(shipment.model, places, how_of(shipment))
    wrong = {name: exactly_wrong(name, one) for name, one in found.items() if not one.ok}
    exact = tuple(sorted({*verdict.exact, *found}))
    return replace(verdict, ok=not wrong, exact=exact, wrong=wrong)


def _said(shipment: Shipment, where: str | None) -> Verified:
    allowed = {name: Allowed(one.rtol, one.atol) for name, one in shipment.request.tolerances}
    return Verified(verified=True, where=where, reason=None, allowed=allowed)
