"""The time that is left: by what looks and batches took, and by what they are expected to."""

import pytest

from ansor_deploy.tune.pace import Pace


def test_before_anything_ended_the_expected_price_counts():
    assert Pace(0.5).left(looks=4, trials=10) == pytest.approx(7.0)


def test_slow_first_looks_say_nothing_of_batches():
    pace = Pace(0.1)
    pace.observe(1, 5.0, look=True)
    pace.observe(1, 6.0, look=True)
    assert pace.left(looks=2, trials=100) == pytest.approx(2 * 3.0 + 100 * 0.1)
    pace.observe(16, 9.2, look=False)
    assert pace.left(looks=0, trials=100) == pytest.approx(100 * 0.2)


def test_a_batch_is_as_long_as_the_time_has_room_for():
    pace = Pace(0.5)
    assert pace.within(3.0) == 6
    pace.observe(16, 32.0, look=False)
    assert pace.within(7.0) == 3
    assert pace.within(0.1) == 1
