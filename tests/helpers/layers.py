"""A user's registry that looks for two tasks in layers."""

from collections.abc import Sequence

from ansor_deploy.registry.layer import Layer
from ansor_deploy.registry.layers import bring_in, indexes
from ansor_deploy.registry.record import TaskKey
from ansor_deploy.registry.store import Registry
from helpers.foreign import record

KEYS = [record(size).key for size in (64, 128)]
KEY = KEYS[0]
NOON = "2026-11-20T12:00:00Z"


def warnings_of(store: Registry, *layers: Layer, keys: Sequence[TaskKey] = KEYS) -> list[str]:
    """The warnings of a build that looks for the keys in these layers."""
    warned: list[str] = []
    bring_in(indexes(layers, warned.append), keys, store, warned.append)
    return warned


def ids(store: Registry, key: TaskKey = KEY) -> set[str]:
    """The ids of a task's records."""
    return {name for _, name, _ in store.ranking(key)}
