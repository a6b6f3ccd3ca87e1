"""Race a library with the untuned one, which is shipped if it is faster, and another engine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...devices.machine import Machine
from ...errors import MachineError, ModelError, UsageError
from ...system.digest import file_sha256
from ..compile import write
from ..describe import of_codes
from ..manifest import Draft, Race, Speed
from ..up_to_date import records_digest
from ..verify.tried import tried_on
from .beside import race_engine
from .fresh import on_this_machine
from .race import LOOKS
from .untuned import compare_speed, time_alone

if TYPE_CHECKING:
    from ..shipment import Shipment
    from ..verify.verify import Library

RACE_SECONDS = 10.0  # the limit of a race with another engine; it ends sooner once it is sure


def raced(
    shipment: Shipment, path: Path, draft: Draft, library: Library, machine: Machine
) -> Draft:
    """The manifest with what is shipped, and its times.

    library: loaded from the path. If the untuned one is faster, it is at that path afterwards.
    """
    untuned, second, speed = _compared(shipment, draft, library, machine)
    if speed.verdict == "same":
        draft = replace(draft, shipped="untuned")
    if speed.verdict == "slower":
        shipment.report.warn(
            "the records make this model slower here: the untuned library is shipped"
        )
        draft = tried_on(shipment, second, untuned, machine)
        untuned.path.replace(path)
        library = untuned if machine.sites else machine.load(path, draft.to_json())
    beside = None if machine.sites else _beside(shipment, library, speed.latency_ms)
    records = records_digest(shipment.records.values())
    return replace(draft, speed=replace(speed, beside=beside, records=records))


def _compared(
    shipment: Shipment, draft: Draft, library: Library, machine: Machine
) -> tuple[Library, Draft, Speed]:
    """The untuned library, its manifest, and the times of both in turns.

    Where both are equal, byte by byte, or there is no second one, the library is timed alone.
    """
    untuned, same = library, False
    if not shipment.records:
        shipment.report.stage("time", "by itself: no task has a record")
    elif not machine.holds(2 * draft.memory.peak):
        shipment.report.stage("time", f"by itself: {machine.name} has no memory for two libraries")
    else:
        shipment.report.stage("compare", "with the untuned build")
        path = library.path.with_name("untuned.so")
        codes = write(path, shipment, {})
        if not (same := file_sha256(path) == file_sha256(library.path)):
            draft = replace(draft, shipped="untuned", **of_codes(shipment, codes))
            untuned = machine.load(path, draft.to_json())
    if untuned is library:
        speed = time_alone(library, shipment.request.seed, same=same)
    else:
        speed = compare_speed(library, untuned, shipment.request.seed)
    shipment.report.compared(speed)
    return untuned, draft, speed


def _beside(shipment: Shipment, library: Library, ours_ms: float) -> Race | None:
    """The race of the library with another engine, in its first shape, if that is requested.

    ours_ms: the manifest's time of a run, to which the race is scaled: so a build has one time.

    There is no race for a model that was not verified, or has empty tensors: some of these make an
    engine end the process.
    """
    engine, first = shipment.request.beside, library.interfaces[0]
    if not engine or not shipment.request.verify or not on_this_machine(library):
        return None
    if empty := [one.name for one in (*first.inputs, *first.outputs) if 0 in one.shape]:
        shipment.report.stage("beside", f"not timed beside {engine}: '{empty[0]}' is empty")
        return None
    model, seed = shipment.model.protos[0], shipment.request.seed
    shipment.report.stage("beside", engine)
    try:
        until = time.monotonic() + RACE_SECONDS
        words = (library, engine, model, 0, seed, until, LOOKS, library.path.parent)
        outcome = race_engine(*words).at(ours_ms)
    except (ModelError, UsageError, MachineError, OSError) as error:  # the build goes on
        shipment.report.warn_once(f"not timed beside it: {error}")
        return None
    shipment.report.raced(outcome)
    return outcome
