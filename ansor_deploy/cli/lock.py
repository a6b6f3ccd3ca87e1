"""`ansor-deploy lock`: take what one model needs out of a lock that several models share."""

from pathlib import Path

import click
from msgspec import Struct

from ..system.json_types import Count
from .declare import existing_file, new_file
from .helptext import Group, with_examples
from .options import input_shape_option, target_option
from .output import Answer, answering
from .requests import chosen_target, tuning_command
from .shapes import InputShapes, shapes_together

output_option = click.option(
    "-o", "--output", type=new_file, required=True, help="The file to write."
)


class Written(Struct, frozen=True):
    """The answer of `lock tasks --json` and `lock select --json`.

    file: the one written. tasks: how many it is about.
    """

    file: str
    tasks: Count


@with_examples(
    "lock tasks net.onnx -o net.tasks", "lock select records.lock --tasks net.tasks -o net.lock"
)
@click.group("lock", cls=Group)
def command() -> None:
    """Take from a lock what one model needs.

    This is for build systems that compare the bytes of inputs, such as Bazel: a model with a lock
    of its own is not built again when the records of other models change.
    """


@with_examples("lock tasks net.onnx -o net.tasks")
@command.command("tasks")
@click.argument("model", type=existing_file)
@output_option
@target_option
@input_shape_option
@answering
def tasks_command(
    model: Path, output: Path, target: str | None, input_shapes: InputShapes
) -> Answer:
    """Write a list of a model's tasks.

    It depends on the model and the target alone.
    """
    from ..model.prepare import prepare
    from ..ship.lock import TaskList

    tasks = TaskList.of(prepare(model, chosen_target(target), shapes_together(input_shapes)))
    tasks.write(output)
    return _written(output, len(tasks.tasks))


@with_examples("lock select records.lock --tasks net.tasks -o net.lock")
@command.command("select")
@click.argument("lock", type=existing_file)
@click.option(
    "--tasks", type=existing_file, required=True, help="The list that `lock tasks` wrote."
)
@output_option
@target_option
@answering
def select_command(lock: Path, tasks: Path, output: Path, target: str | None) -> Answer:
    """Write a lock with another lock's records of these tasks.

    Exits 5 if a task has no record there.
    """
    from ..ship.lock import TaskList, select

    model = TaskList.read(tasks)
    remake = tuning_command(model=Path(model.path), target=target, lock=lock)
    select(model, lock, chosen_target(target), output, remake)
    return _written(output, len(model.tasks))


def _written(file: Path, tasks: int) -> Answer:
    """The answer after a file was written, which has no text: a build system would print it."""
    return Answer(Written(str(file), tasks), [])
