"""The benchmark of races: which verdicts are wrong, and how they are counted."""

import json
from pathlib import Path

from benchmarks.networks import races

FOUND = [
    {"case": "gru.so", "percent": 0.0, "busy": 2, "seconds": 1.0, "verdict": verdict}
    for verdict in ("as fast", "cannot say", "faster", "as fast")
]


def test_a_library_beside_itself_is_neither_faster_nor_slower():
    assert [races.is_wrong(one["verdict"], 0) for one in FOUND] == [False, False, True, False]


def test_what_takes_longer_may_not_be_called_faster_than_the_other():
    assert races.is_wrong("slower", 50)
    assert races.is_wrong("as fast", 50)
    assert not races.is_wrong("faster", 50)


def test_races_of_before_count_along(tmp_path: Path):
    file = tmp_path / "races.jsonl"
    assert races.read(file) == []
    file.write_text("".join(json.dumps(one) + "\n" for one in FOUND))
    _, line = races.table(races.read(file))
    words = "gru.so 0% 2 4 25.0% 1.00 2 as fast, 1 cannot say, 1 faster"
    assert " ".join(line.split()) == words
