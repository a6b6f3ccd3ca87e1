"""The draft of speeds: how many vectors of operations a program's statements take."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.registry_samples import TARGET

from ansor_deploy.tune.search.draft import draft

SIXTEEN = replace(TARGET, vector_bytes=64)


def statement(operations, lanes):
    """A row of features, each the logarithm of one more than what it counts."""
    row = np.zeros(164, np.float32)
    row[[1, 17]] = np.log2(np.array([operations, lanes]) + 1)
    return row


def ahead(one, other, target=SIXTEEN):
    first, second = draft([np.stack(one), np.stack(other)], target)
    return np.exp(first - second)


def test_full_vectors_are_as_much_faster_as_they_hold_numbers():
    assert ahead([statement(1e6, 16)], [statement(1e6, 0)]) == pytest.approx(16, rel=1e-3)
    assert ahead([statement(1e6, 16)], [statement(1e6, 4)]) == pytest.approx(4, rel=1e-3)


def test_what_no_register_holds_is_no_faster():
    assert ahead([statement(1e6, 64)], [statement(1e6, 16)]) == pytest.approx(1, rel=1e-3)


def test_all_statements_take_their_time():
    both = [statement(1e6, 16), statement(1e6, 1)]
    assert ahead([statement(1e6, 1)], both) == pytest.approx(17 / 16, rel=1e-3)


def test_nothing_has_no_draft_and_moves_have_no_operations():
    assert len(draft([], SIXTEEN)) == 0
    assert np.isfinite(draft([np.stack([statement(0, 16)])], SIXTEEN)).all()
