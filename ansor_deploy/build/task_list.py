"""Which tasks a model has: all that needs to be known of it to tell what a lock must hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..errors import UsageError
from ..registry.record import TaskKey
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
            data = msgspec.json.decode(file.read_bytes(), type=_File)
        except msgspec.MsgspecError as error:
            hint = "Make it: ansor-deploy lock tasks MODEL -o FILE."
            raise UsageError(f"{file}: not a list of tasks: {error}", hint) from error
        tasks = (NamedTask(name, TaskKey(*key)) for name, *key in data.tasks)
        return cls(Path(data.model), tuple(tasks))

    def write(self, file: Path) -> None:
        """Whole or not at all; equal lists are equal files."""
        tasks = [[task.name, task.key.workload, task.key.target] for task in self.tasks]
        text = canonical_json({"model": str(self.path), "tasks": tasks})
        write_whole(file, f"{text}\n".encode())


class _File(msgspec.Struct):
    """The JSON of a list: of each task its name, its workload's key and its target's fingerprint."""

    model: str
    tasks: list[tuple[str, str, str]]
