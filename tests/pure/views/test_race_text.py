"""What is said of a race: the verdict, and figures of one base; and what else was seen."""

import pytest

from ansor_deploy.ship.manifest import UNTUNED, Speed
from ansor_deploy.ship.race.race import race_of
from ansor_deploy.system.other_work import OtherWork
from ansor_deploy.views import text

FASTER = Speed.raced((1.0,), race_of(UNTUNED, 1.0, 1.84, 1 / 1.84, (0.53, 0.56), 10))
SLOWER = Speed.raced((1.0,), race_of(UNTUNED, 2.0, 1.0, 2.0, (1.9, 2.1), 10))
BUSY = OtherWork(3.1, 2, 0.12, 1.8)
EQUAL = Speed.raced((1.1,), race_of(UNTUNED, 1.01, 1.0, 1.01, (0.98, 1.02), 20))
UNSURE = Speed.raced((1.1,), race_of(UNTUNED, 2.56, 3.88, 0.66, (0.61, 1.26), 40, BUSY))


@pytest.mark.parametrize(
    ("speed", "gain", "shipped"),
    [
        (
            FASTER,
            "1.84x faster than untuned: 1.00 ms a run beside 1.84 ms (1.79x to 1.89x, 99%)",
            "tuned",
        ),
        (
            SLOWER,
            "2.00x slower than untuned: 2.00 ms a run beside 1.00 ms (1.90x to 2.10x, 99%)",
            "untuned",
        ),
        (
            EQUAL,
            "as fast as untuned: 1.01 ms a run beside 1.00 ms (0.98 to 1.02 of its time, 99%)",
            "tuned",
        ),
        (
            UNSURE,
            (
                "cannot say whether it is faster than untuned: 2.56 ms a run beside 3.88 ms (0.61 "
                "to 1.26 of its time, 99%); this machine is busy (load 3.1 on 2 cores, 12% of its "
                "time stolen, a reference loop up to 1.8x its time)"
            ),
            "tuned",
        ),
    ],
)
def test_speed(speed, gain, shipped):
    assert text.speed_text(speed) == f"{gain}; {shipped} is shipped"


def test_a_speed_keeps_its_race():
    race = race_of(UNTUNED, 2.56, 3.88, 0.66, (0.61, 1.26), 40, BUSY)
    assert Speed.raced((1.1,), race).race == race


def test_a_race_without_a_verdict_says_what_to_do():
    quiet = OtherWork(0.5, 2, 0.0, 1.0)
    few = race_of("X 1.0", 1.0, 2.0, 0.5, None, 3, quiet)
    assert text.race_text(few, text.again(5.0)) == (
        "cannot say whether it is faster than X 1.0: 1.00 ms a run beside 2.00 ms (3 turns: too "
        "few to be sure); meanwhile: load 0.5 on 2 cores, 0% of its time stolen, a reference loop "
        "up to 1.0x its time; again with --time 30s"
    )
    assert text.race_text(FASTER.race, text.again(5.0)).endswith("99%)")
    assert text.again(30.0) == "again with --time 120s"  # and not what was just done


@pytest.mark.parametrize(
    ("same", "said"),
    [(False, "untuned: 1.00 ms a run"), (True, "the same as untuned, byte by byte: 1.00 ms a run")],
)
def test_a_library_without_an_other_one_is_raced_with_nothing(same, said):
    speed = Speed.alone((1.0,), same=same)
    assert text.speed_text(speed) == said
    assert speed.race is None
