"""What changed from one library to the next, and when that fails a pipeline."""

import pytest

from ansor_deploy.build.beside import Beside
from ansor_deploy.build.changes import changes
from ansor_deploy.cli.compare import lines

SLOWER = Beside("old.so", 1.1, 1.0, 1.1, (1.05, 1.2), 8)


def manifest(records, library=10):
    tasks = [
        {"key": key * 64, "name": "conv", "title": f"conv2d {key}", "record": record}
        for key, record in records.items()
    ]
    return {"tasks": tasks, "memory": {"library": library, "weights": 5}}


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
    assert found.bytes == {"library": (10, 20), "weights": (5, 5)}


def test_the_text():
    said = list(lines(changes(OLD, NEW, SLOWER, TIMES)))
    assert said[1].split() == ["aaaaaa", "conv2d", "a", "4.00", "ms", "1.00", "ms", "-75%", "tuned"]
    assert "library: 20 B before" not in said
    assert said[-2] == "library: 10 B before, 20 B now"
    assert said[-1].startswith("1.10x slower than old.so: 1.10 ms a run beside 1.00 ms")
    assert list(lines(changes(OLD, OLD, None)))[-1] == "not timed: they do not run here"


@pytest.mark.parametrize(
    ("ratio", "interval", "share", "slower"),
    [
        (1.1, (1.05, 1.2), 0.03, True),
        (1.1, (1.05, 1.2), 0.15, False),
        (1.1, (0.95, 1.2), 0.03, False),  # that is not sure
        (1.1, None, 0.03, False),
        (0.9, (0.8, 0.95), 0.0, False),
    ],
)
def test_what_fails(ratio, interval, share, slower):
    found = changes(OLD, NEW, Beside("old.so", ratio, 1.0, ratio, interval, 8))
    assert found.slower(share) == slower
