"""Neighbours that lend a task their schedule where nothing can be measured.

A build whose code runs nowhere takes schedules of the same programs tuned for machines with the
same core, or of other programs of their families. No compiler is loaded for this, since an
unchanged build needs it too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from ..registry.record import TaskKey
from ..system.digest import canonical_json, sha256
from .search.neighbours import Neighbour, nearest

if TYPE_CHECKING:
    from .ledger import Ledger

Lenders = dict[TaskKey, list[Neighbour]]


def lenders(lacking: Collection[TaskKey], ledger: Ledger) -> Lenders:
    """Neighbours of tasks without a record, the same program first; {} where code can be run."""
    if ledger.measures or not lacking:
        return {}
    known = ledger.registry.workloads(lacking)
    asked = {key: known[key.workload] for key in lacking if key.workload in known}
    found = nearest(asked, ledger.registry, ledger.tvm, ledger.request.target)
    return {
        key: sorted(several, key=lambda one: one.workload.key != key.workload)
        for key, several in found.items()
    }


def lenders_digest(found: Mapping[TaskKey, Sequence[Neighbour]]) -> str | None:
    """SHA-256 over the schedules that would be lent; None where there are none."""
    said = [
        [key.workload, one.workload.key, one.machine and one.machine.fingerprint, list(one.traces)]
        for key, several in sorted(found.items(), key=lambda pair: pair[0].workload)
        for one in several
    ]
    return sha256(canonical_json(said)) if said else None
