"""What holds a machine back while something is measured on it is said, once."""

import pytest

from ansor_deploy.devices import probe
from ansor_deploy.devices.site import LocalSite
from ansor_deploy.devices.strain import strain
from ansor_deploy.measure import sites
from ansor_deploy.measure.sites import Sites

LOOKS = LocalSite.strain  # as it is, whatever tests in a hurry make of it
PLACES = {
    "governor": "devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "bits": "devices/platform/soc/soc:firmware/get_throttled",
    "millidegrees": "class/thermal/thermal_zone0/temp",
}


@pytest.fixture
def says(tmp_path, monkeypatch):
    """Puts what a board says into its /sys, which is empty at first."""
    monkeypatch.setattr(probe, "SYSTEM", tmp_path)
    monkeypatch.setattr(probe, "FIRMWARE", tmp_path / PLACES["bits"])

    def write(**said):
        for name, value in said.items():
            place = tmp_path / PLACES[name]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"{value}\n")

    return write


@pytest.fixture
def measured(monkeypatch):
    """Counts a success on this machine; what is warned of so far."""
    monkeypatch.setattr(sites, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(LocalSite, "strain", LOOKS)
    site, warnings = LocalSite(1), []
    site.name = "pi"
    lent = Sites([site], lambda _: None, warnings.append, lambda *_: None)

    def measure():
        lent.count_success(site)
        return warnings

    yield measure
    site.close()


def test_a_machine_that_says_nothing_is_not_spoken_of(says, measured):
    assert measured() == []
    says(governor="performance", bits="50000", millidegrees=48300)  # throttled once, not now
    assert measured() == []


def test_what_holds_it_back_is_said_once_each(says, measured):
    says(governor="ondemand", millidegrees=48300)
    assert len(measured()) == 1
    (first,) = measured()
    assert "pi" in first
    assert "ondemand" in first
    assert "48 C" in first
    says(bits="50005", millidegrees=81000)
    assert len(measured()) == 2
    assert "under-voltage and throttled and its clock governor" in measured()[-1]


def test_the_hottest_sensor_counts():
    assert strain([], {"a": 40.0, "b": 61.0}, None).degrees == 61.0
    assert strain([], {}, None).degrees is None
