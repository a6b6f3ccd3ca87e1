"""The schemas are schemas, and say no of what is not meant."""

import pytest
from jsonschema import Draft202012Validator

from ansor_deploy.cli.schemas import DESCRIBED, schema


@pytest.mark.parametrize("name", DESCRIBED)
def test_it_is_a_schema(name):
    Draft202012Validator.check_schema(schema(name))


def test_what_lacks_a_field_is_refused():
    answer = {"before": 1, "after": 2}
    assert Draft202012Validator(schema("registry-vacuum")).is_valid(answer)
    assert Draft202012Validator(schema("registry-vacuum")).is_valid({**answer, "later": 3})
    for spoilt in ({"before": 1}, {**answer, "after": "2"}, {**answer, "after": -1}):
        assert not Draft202012Validator(schema("registry-vacuum")).is_valid(spoilt)
