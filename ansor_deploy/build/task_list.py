"""Which tasks a model has: all that needs to be known of it to tell what a lock must hold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..registry.keys import TaskKey
from ..system.digest import canonical_json
from ..system.atomic_file import write_whole

if TYPE_CHECKING:
    from ..model.prepare import Prepared


@dataclass(frozen=True)
class NamedTask:
    """A task by its name in the model, for people, and its key."""

    name: str
    key: TaskKey


@dataclass(frozen=True)
class TaskList:
    """The tasks of a model for one target. path: where the model was."""

    path: Path
    tasks: tuple[NamedTask, ...]

    @classmethod
    def of(cls, model: Prepared) -> TaskList:
        """The tasks of a model that was read."""
        return cls(model.path, tuple(NamedTask(task.name, task.key) for task in model.tasks))

    @classmethod
    def read(cls, file: Path) -> TaskList:
        """What `write` has written; UsageError for anything else."""
        try:
            return cls.from_json(json.loads(file.read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError) as error:
            hint = "Make it: ansor-deploy lock tasks MODEL -o FILE."
            raise UsageError(f"{file}: not a list of tasks: {error}", hint) from error

    def write(self, file: Path) -> None:
        """Whole or not at all; equal lists are equal files."""
        write_whole(file, (canonical_json(self.to_json()) + "\n").encode())

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal list."""
        tasks = [[task.name, task.key.workload, task.key.target] for task in self.tasks]
        return {"model": str(self.path), "tasks": tasks}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TaskList:
        """The list of a `to_json` object; KeyError, TypeError or ValueError if it is not one."""
        return cls(Path(data["model"]), tuple(_tasks(data["tasks"])))


def _tasks(rows: Iterable[Any]) -> Iterable[NamedTask]:
    for name, workload, target in rows:
        yield NamedTask(name, TaskKey(workload, target))
