"""Worker processes that outlive a test, so that the next one of the kind need not import all again.

Only an intact, idle child is kept. One that is busy when it is interrupted or closed, or that was
killed, ends as usual.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ansor_deploy.devices import site
from ansor_deploy.measure import builder
from ansor_deploy.ship.race import fresh, streams
from ansor_deploy.system import fence
from ansor_deploy.system.worker import Worker

_MOST = 10  # two that build, one that runs, one that races and two streams, and others
_kept: list[tuple[Hashable, WarmWorker]] = []


class WarmWorker(Worker):
    """A worker whose first child is taken over from a closed worker, if there is one."""

    def __init__(self, preload: str, env: Mapping[str, str] | None = None) -> None:
        env = _with_wide_fence(env or {})
        super().__init__(preload, env)
        self._kind = (preload, str(env), _surroundings())
        self._fresh, self._at_work = True, False

    def start(self) -> None:
        if self._fresh:
            self._fresh = False
            self._take_over()
        super().start()

    def call(self, *words: Any, **more: Any) -> Any:
        self._at_work = True
        try:
            return super().call(*words, **more)
        finally:
            self._at_work = False

    def interrupt(self) -> None:
        if self._at_work:
            super().interrupt()

    def kill(self) -> None:
        at_work, self._at_work = self._at_work, True
        super().kill()
        self._at_work = at_work

    def close(self) -> None:
        if not self._waits():
            super().close()
            return
        _kept.append((self._kind, left := WarmWorker(self._preload)))
        self._exchange(left)
        super().close()
        if len(_kept) > _MOST:
            Worker.close(_kept.pop(0)[1])

    def _waits(self) -> bool:
        return self._process is not None and self._process.poll() is None and not self._at_work

    def _take_over(self) -> None:
        for one in [one for one in reversed(_kept) if one[0] == self._kind]:
            _kept.remove(one)
            if one[1]._waits():
                self._exchange(one[1])
            Worker.close(one[1])
            if self._process is not None:
                return

    def _exchange(self, other: WarmWorker) -> None:
        """Exchange children with another worker."""
        for name in ("_process", "_connection", "_ready", "_output"):
            mine, others = getattr(self, name), getattr(other, name)
            setattr(self, name, others)
            setattr(other, name, mine)


def _with_wide_fence(env: Mapping[str, str]) -> dict[str, str]:
    """Widen the fence, which a process cannot change later, to the folders of all sites."""
    names = env.keys() & {fence.VARIABLE, "TMPDIR"}
    wide = {name: str(Path(env[name]).parent) for name in names}
    return {**env, **wide}


def _surroundings() -> Hashable:
    """What a child inherits from the process that starts it."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_CURRENT")}
    return str(sorted(variables.items())), str(sys.path), str(os.sched_getaffinity(0))


def none_kept(patch: pytest.MonkeyPatch) -> None:
    """Let workers end when they are closed, as they do for a user."""
    _use(Worker, patch)


def _use(kind: type[Worker], patch: pytest.MonkeyPatch) -> None:
    for module in (builder, site, fresh, streams):
        patch.setattr(module, "Worker", kind)


@contextmanager
def kept_warm() -> Iterator[None]:
    """Let workers that build, run and race outlive what has started them."""
    with pytest.MonkeyPatch.context() as patch:
        _use(WarmWorker, patch)
        yield
    for _, worker in _kept:
        Worker.close(worker)
    _kept.clear()
