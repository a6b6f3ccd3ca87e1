"""The clock that a record has beside its times."""

import os

import pytest

from ansor_deploy.measure import clock


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A folder of clocks, and a file of processors, as a kernel has them; both empty."""
    monkeypatch.setattr(clock, "_CPUS", tmp_path)
    monkeypatch.setattr(clock, "_CPUINFO", tmp_path / "cpuinfo")
    return tmp_path


def test_the_fastest_of_the_cores_counts(kernel):
    for place, cpu in enumerate(sorted(os.sched_getaffinity(0))):
        (kernel / f"cpu{cpu}/cpufreq").mkdir(parents=True)
        (kernel / f"cpu{cpu}/cpufreq/scaling_cur_freq").write_text(f"{1_400_000 - place * 1000}\n")
    assert clock.megahertz() == 1400


def test_a_virtual_machine_says_it_elsewhere(kernel):
    (kernel / "cpuinfo").write_text("cpu MHz\t\t: 2600.002\nflags\t: x\ncpu MHz\t\t: 2100.5\n")
    assert clock.megahertz() == 2600


@pytest.mark.parametrize("said", [b"", b"Features : fp asimd\n", b"cpu MHz : fast\n"])
def test_a_kernel_that_says_nothing(kernel, said):
    (kernel / "cpuinfo").write_bytes(said)
    assert clock.megahertz() == 0
    (kernel / "cpuinfo").unlink()
    assert clock.megahertz() == 0
