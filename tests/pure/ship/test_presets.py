"""Which splits of the cores are tried for what a library is used for, and how they are told."""

from ansor_deploy.ship.preset import Preset, Split
from ansor_deploy.ship.race.presets import splits
from ansor_deploy.views.text import preset_text


def test_splits_leave_no_core_idle():
    assert splits("throughput", 6) == [(1, 6), (2, 3), (3, 2), (6, 1)]
    assert splits("latency", 6) == [(1, 1), (2, 1), (3, 1), (6, 1)]
    assert splits("throughput", 1) == [(1, 1)]


def test_a_preset_as_a_sentence():
    tried = (Split(1, 2, 28956.4, 5.0), Split(2, 1, 250.0, 4.0))
    assert preset_text(Preset("throughput", 1, 2, tried)) == (
        "for throughput: 2 streams of 1 thread, 28,956 runs a second "
        "(beside 1 stream of 2 threads, 250 runs a second)"
    )
    assert (
        preset_text(Preset("latency", 2, 1, tried[1:])) == "for latency: 2 threads, 4.00 ms a run"
    )
