"""A fresh registry, for the tests of several rooms."""

import pytest
from helpers.registry_samples import TARGET

from ansor_deploy.registry.store import Registry


@pytest.fixture
def path(tmp_path):
    """Where a registry may be: there is none, nor its folder."""
    return tmp_path / "data" / "registry.db"


@pytest.fixture
def registry(path):
    """A registry, open for writing, that knows a target and nothing else."""
    with Registry.open(path) as opened:
        opened.add_target(TARGET)
        yield opened
