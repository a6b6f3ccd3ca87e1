"""Wrong candidates, measured by this machine's workers."""

import pytest
from helpers.suspects import suspects


@pytest.fixture(scope="module")
def court(tmp_path_factory):
    with suspects(tmp_path_factory.mktemp("suspects")) as made:
        yield made
