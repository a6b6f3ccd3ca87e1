"""What two registries differ in, whether they are files of their own or were exported."""

from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.foreign import registry
from helpers.registry_samples import TARGET

from ansor_deploy.registry.exchange import export_file

SUMS = "1 task with the same best record; only in A 1, only in B 1; faster in A 1, in B 0"


def test_tasks_differ_that_one_lacks_or_has_faster(tmp_path):
    one = registry(registry(tmp_path / "a.db", 64, 128), 256, seconds=2e-3)
    other = registry(registry(tmp_path / "b.db", 64, 512), 256, seconds=4e-3)
    found = answer(tmp_path, "registry", "diff", one, other)
    rows = found.pop("tasks")
    assert found == {"same": 1, "only_a": 1, "only_b": 1, "faster_a": 1, "faster_b": 0}
    times = [(row["a_ms"], row["b_ms"]) for row in rows]
    assert sorted(times[:2], key=str) == [(2.0, None), (None, 2.0)]
    assert times[2] == (4.0, 8.0)
    assert {row["fingerprint"] for row in rows} == {TARGET.fingerprint}

    export_file(other, tmp_path / "b.jsonl")
    said = program(tmp_path, "registry", "diff", one, "b.jsonl", "--limit", 2).stdout.splitlines()
    assert said[0].split() == ["key", "task", "target", "A", "B"]
    assert said[3:] == ["and 1 more, which --json lists", SUMS]
    same = answer(tmp_path, "registry", "diff", other, "b.jsonl")
    assert (same["same"], same["tasks"]) == (3, [])


def test_what_is_neither_is_refused(tmp_path):
    (tmp_path / "a").write_text("no bundle")
    refused(program(tmp_path, "registry", "diff", "a", "a"), 8)
    refused(program(tmp_path, "registry", "diff", "a", "nosuch"), 2)
