"""What fits on a board: its library's runs beside its memory, its file beside its disk."""

import pytest

from ansor_deploy.devices.room import Room, check_room, memory_of_runs
from ansor_deploy.errors import DeviceError

TENSOR = {"name": "x", "shape": [1000], "dtype": "float32"}
MANIFEST = {"inputs": [TENSOR], "outputs": [TENSOR], "memory": {"peak": 50_000}}


class Site:
    """A board that gets memory back where its process is started anew."""

    name = "pi"

    def __init__(self, memory, disk=10**9, kept=0):
        self._memory, self._disk, self.kept = memory, disk, kept

    def room(self):
        return Room(None if self._memory is None else self._memory - self.kept, self._disk)

    def restart(self):
        self.kept = 0

    def call(self, function, payload, timeout):
        return 1


@pytest.fixture
def library(tmp_path):
    path = tmp_path / "net.so"
    path.write_bytes(bytes(40_000))
    return path


def test_a_run_takes_its_peak_and_its_tensors_once_more(library):
    assert memory_of_runs(library, MANIFEST) == 58_000
    unknown = {**MANIFEST, "memory": None}
    assert memory_of_runs(library, unknown) == 48_000
    several = [MANIFEST, {"inputs": [TENSOR] * 5, "outputs": [TENSOR]}]
    assert memory_of_runs(library, {**MANIFEST, "variants": several}) == 74_000


@pytest.mark.parametrize("memory", [58_000, None])
def test_what_fits_or_nobody_knows_is_sent(memory, library):
    check_room(Site(memory), library, MANIFEST)


def test_what_does_not_fit_is_refused_in_words(library):
    with pytest.raises(
        DeviceError, match=r"its runs take 58 kB of memory, and pi has 57.9 kB free"
    ):
        check_room(Site(57_900), library, MANIFEST)
    with pytest.raises(
        DeviceError, match=r"it has 40 kB, and the disk of pi has 39.9 kB free; it was not sent"
    ):
        check_room(Site(10**6, disk=39_900), library, MANIFEST)


def test_what_a_process_keeps_of_former_runs_is_no_obstacle(library):
    site = Site(60_000, kept=30_000)
    check_room(site, library, MANIFEST)
    assert site.kept == 0


def test_where_winograds_weights_are_too_large_it_says_how_to_do_without(library):
    task = {"name": "conv2d", "rewriting": "winograd b1 4"}
    with pytest.raises(DeviceError) as plain:
        check_room(Site(57_900), library, {**MANIFEST, "tasks": [{**task, "rewriting": None}]})
    with pytest.raises(DeviceError) as rewritten:
        check_room(Site(57_900), library, {**MANIFEST, "tasks": [task]})
    assert "--precision strict" not in plain.value.hint
    assert "--precision strict" in rewritten.value.hint
