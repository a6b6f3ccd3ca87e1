"""What changed from one library to the next, and when that fails a pipeline."""

import shutil

import pytest
from helpers import libraries
from helpers.cli_inside import program
from msgspec.structs import replace

from ansor_deploy.cli.compare import lines
from ansor_deploy.ship.manifest import File
from ansor_deploy.ship.race.changes import changes
from ansor_deploy.ship.race.race import race_of
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

SLOWER = race_of("old.so", 1.1, 1.0, 1.1, (1.05, 1.2), 8)


def manifest(records, library=10):
    tasks = [
        libraries.task(key * 64, title=f"conv2d {key}", record=record)
        for key, record in records.items()
    ]
    memory = {"library": library, "weights": 5, "workspace": 7, "peak": 9}
    return libraries.manifest(tasks=tasks, memory=memory)


OLD = manifest({"a": "default", "b": "r1", "c": "r2", "d": "r3", "e": "r4"})
NEW = manifest({"a": "r5", "b": "default", "c": "r6", "d": "r3", "f": "default"}, library=20)
TIMES = (
    {key * 64: ms for key, ms in {"a": 4.0, "b": 1.0, "c": 2.0, "d": 9.0}.items()},
    {key * 64: ms for key, ms in {"a": 1.0, "b": 2.0, "c": 2.5, "d": 9.5}.items()},
)


def test_what_became_of_each_task():
    found = changes(OLD, NEW, None, TIMES)
    assert [(task.key[0], task.what) for task in found.tasks] == [
        ("a", "tuned"),
        ("b", "untuned"),
        ("c", "other schedule"),
        ("e", "gone"),
        ("f", "new"),
        ("d", "same"),
    ]
    assert found.tasks[0].delta_ms == -3.0
    assert found.bytes == {
        "library": (10, 20),
        "weights": (5, 5),
        "workspace": (7, 7),
        "peak": (9, 9),
    }


def test_the_text():
    said = list(lines(changes(OLD, NEW, SLOWER, TIMES), 5.0))
    assert said[1].split() == ["aaaaaa", "conv2d", "a", "4.00", "ms", "1.00", "ms", "-75%", "tuned"]
    assert "library: 20 B before" not in said
    assert said[-3] == "library: 10 B before, 20 B now"
    assert said[-2].startswith("1.10x slower than old.so: 1.10 ms a run beside 1.00 ms")
    assert said[-1].startswith(
        "by the profile 1 of 4 tasks are faster and 3 slower; all take 16 ms"
    )
    assert list(lines(changes(OLD, OLD, None), 5.0))[-1] == "not timed: they do not run here"


@pytest.mark.parametrize(
    ("ratio", "interval", "share", "slower"),
    [
        (1.1, (1.05, 1.2), 0.03, True),
        (1.1, (1.05, 1.2), 0.15, False),
        (1.1, (0.95, 1.2), 0.03, False),  # that is not sure
        (1.1, None, 0.03, False),  # nor is that
        (0.9, (0.8, 0.95), 0.0, False),
    ],
)
def test_what_fails(ratio, interval, share, slower):
    found = changes(OLD, NEW, race_of("old.so", ratio, 1.0, ratio, interval, 8))
    assert found.slower(share) == slower


RULES = {
    "before": [("a.py", "1"), ("b.py", "2")],
    "after": [("a.py", "1"), ("b.py", "3"), ("c.py", "4")],
}


def test_what_made_them_and_has_changed_is_listed():
    old, new = (
        replace(OLD, tool=tool, rules=tuple(File(name, digest) for name, digest in rules))
        for tool, rules in zip(("1.0", "1.1"), RULES.values(), strict=True)
    )
    found = changes(old, new, None)
    assert [(one.name, one.before, one.after) for one in found.made_by] == [
        ("tool", "1.0", "1.1"),
        ("rule b.py", "2", "3"),
        ("rule c.py", None, "4"),
    ]
    said = list(lines(found, 5.0))
    assert said[-4:-1] == ["tool: 1.0 before, 1.1 now", "rule b.py: changed", "rule c.py: new"]
    assert changes(old, old, None).made_by == ()


EVEN = race_of("old.so", 1.0, 1.0, 1.0, (0.99, 1.01), 40)


@pytest.mark.parametrize(
    ("race", "factor", "explained"),
    [(EVEN, 0.8, True), (EVEN, 1.01, False), (SLOWER, 1.2, False), (SLOWER, 0.8, True)],
)
def test_tasks_that_a_race_does_not_bear_out_are_explained(race, factor, explained):
    before = {key * 64: 1.0 for key in "abc"}
    after = dict.fromkeys(before, factor)
    found = changes(OLD, NEW, race, (before, after))
    assert ("3 of 3 tasks" in found.explanation or "3 slower" in found.explanation) == explained
    assert (list(lines(found, 5.0))[-1] == found.explanation) == explained


def test_a_gate_that_cannot_be_decided_does_not_pass(tmp_path, monkeypatch):
    target = load_target("rpi3", [shipped("targets")])
    libraries.build(tmp_path / "old.so", target)
    with monkeypatch.context() as patch:
        patch.setattr("sys.executable", shutil.which("sh"))  # other bytes
        libraries.build(tmp_path / "new.so", target)
    gate = ("compare", "old.so", "new.so", "--fail-if-slower", "3%")
    result = program(tmp_path, *gate)
    assert (result.returncode, "not timed: they do not run here" in result.stdout) == (4, True)
    assert "--fail-if-slower cannot be decided" in result.stderr
    assert program(tmp_path, *gate[:3]).returncode == 0  # what changed is all that was asked
    same = ("compare", "old.so", "old.so", *gate[3:])
    assert program(tmp_path, *same).returncode == 0
