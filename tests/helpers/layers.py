"""A user's registry that asks layers for two tasks."""

from collections.abc import Sequence

from ansor_deploy.registry.layers import Layer, bring_in, indexes
from ansor_deploy.registry.record import TaskKey
from ansor_deploy.registry.store import Registry
from helpers.foreign import record

KEYS = [record(size).key for size in (64, 128)]
KEY = KEYS[0]
NOON = "2026-11-20T12:00:00Z"


def warnings_of(store: Registry, *layers: Layer, keys: Sequence[TaskKey] = KEYS) -> list[str]:
    """What a build is warned of when it asks the layers for the keys."""
    warned: list[str] = []
    bring_in(indexes(layers, warned.append), keys, store, warned.append)
    return warned


def ids(store: Registry, key: TaskKey = KEY) -> set[str]:
    """The records of a task."""
    return {name for _, name, _ in store.ranking(key)}
