"""What these tests ask of a model's code is that its numbers are right."""

import pytest
from helpers.quick_compiler import quick_compiler


@pytest.fixture(scope="module", autouse=True)
def _little_effort():
    with quick_compiler():
        yield
