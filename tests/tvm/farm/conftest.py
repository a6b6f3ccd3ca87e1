"""Farms of real workers, and commands that tune on them."""

from contextlib import closing, contextmanager

import onnx
import pytest
from helpers.device_runs import Run, workplace
from helpers.farm import TUNE, Farm
from helpers.graphs import dense


@contextmanager
def started(folder):
    """A farm whose workers have a cache of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        with closing(Farm(folder)) as made:
            yield made


@pytest.fixture
def farm(tmp_path_factory):
    with started(tmp_path_factory.mktemp("farm")) as made:
        yield made


@pytest.fixture(scope="module")
def whole_farm(tmp_path_factory):
    """A farm of one worker, which no test breaks."""
    with started(tmp_path_factory.mktemp("farm")) as made:
        made.worker("one")
        yield made


@pytest.fixture
def folder(tmp_path):
    made = workplace(tmp_path / "work")
    onnx.save(dense(16, 32), made / "net.onnx")  # one task
    onnx.save(dense(24, 16), made / "other.onnx")
    return made


@pytest.fixture
def tuning(folder):
    """`tuning(farm, words)`: the command under way on a farm."""
    runs = []

    def start(farm, *words):
        runs.append(Run(folder, "tune", *words, "--farm", farm.address, *TUNE))
        return runs[-1]

    yield start
    for run in runs:
        run.close()
