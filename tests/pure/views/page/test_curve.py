"""How a model became faster, as the registry has it."""

from dataclasses import replace

import pytest
from helpers.registry_samples import TARGET, key, measurement, workload

from ansor_deploy.registry.store import Registry
from ansor_deploy.views.page.curve import Weighed, tuning

TASKS = [Weighed(key(n).workload, f"conv {n}", n + 1, 3.0) for n in range(3)]
MODEL = ("net.onnx", TARGET.fingerprint, TASKS)


def measured(number, seconds, second):
    one = measurement(key(number))
    made = replace(one.provenance, created=f"2026-01-31T12:00:{second:02d}Z")
    times = (seconds,) if seconds else ()
    return replace(one, seconds=times, error="" if seconds else "crash", provenance=made)


@pytest.fixture
def registry(tmp_path):
    with Registry.open(tmp_path / "r.db", write=True) as made:
        made.add_target(TARGET)
        made.add_workloads([workload(n) for n in range(3)])
        yield made


def test_a_task_and_the_model_fall_with_the_trials(registry):
    first = [measured(0, 4e-3, 1), measured(0, None, 2), measured(0, 5e-3, 3)]
    later = [measured(1, 2e-3, 4), measured(0, 1e-3, 5)]
    registry.add_batch([*first, *later], [])
    found = tuning(registry, *MODEL)
    (task,) = found.tasks  # the other one was looked at once
    assert task.points == ((1.0, 4.0), (4.0, 1.0), (4.0, 1.0))
    # The third task was not measured: three times 3 ms, as the manifest says.
    assert [round(ms, 6) for _, ms in found.model.points] == [17.0, 14.0, 14.0]
    assert [trials for trials, _ in found.model.points] == [4.0, 5.0, 5.0]
    assert found.seconds[-1] == 4.0


def test_nothing_was_measured(registry):
    assert tuning(registry, *MODEL) is None
