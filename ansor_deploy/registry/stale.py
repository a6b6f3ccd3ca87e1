"""Records that another version of TVM made.

From release to release TVM changes what its instructions do. Such a record is never used as it
is, but it is a good guess, and `ansor_deploy.tune.revalidate` tries it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .record import Record, TaskKey
    from .store import Registry

FEW = 3  # best records of each version: what is behind them will hardly be the best now
_KNOWN = 256  # records of this version that are looked at


def stale(registry: Registry, key: TaskKey, tvm: str, most: int = FEW) -> list[Record]:
    """A key's records of other versions of TVM that this one has not tried.

    The best of each version come first. most: of each version; of these, what was measured with
    this version already, well or not, is left out.
    """
    others = {version for version, _, _ in registry.ranking(key)} - {tvm}
    if not others:
        return []
    measured = registry.measurements(key.target, key)
    tried = {one.trace for one in measured if one.provenance.tvm == tvm}
    tried |= {record.trace for record in registry.top(key, tvm, _KNOWN)}
    ranked = [
        (rank, record.latency, record.id, record)
        for version in others
        for rank, record in enumerate(registry.top(key, version, most))
        if record.trace not in tried
    ]
    found: dict[str, Record] = {}
    for *_, record in sorted(ranked):
        found.setdefault(record.trace, record)
    return list(found.values())
