"""How long a trial takes in this run, for the time that is left."""

from dataclasses import dataclass


@dataclass
class _Rate:
    trials: int = 0
    seconds: float = 0.0


class Pace:
    """First looks and batches apart: a look is one trial, and waits for its build.

    expected: seconds of a trial as long as no batch has ended.
    """

    def __init__(self, expected: float) -> None:
        self._expected = expected
        self._looks, self._batches = _Rate(), _Rate()
        self._until = 0.0

    def observe(self, trials: int, elapsed: float, *, look: bool) -> None:
        """Take in a batch that ended `elapsed` seconds after the run began."""
        rate = self._looks if look else self._batches
        rate.trials += trials
        rate.seconds += elapsed - self._until
        self._until = elapsed

    def within(self, seconds: float) -> int:
        """How many trials of a batch so many seconds have room for, at least one."""
        return max(1, int(seconds / self._seconds(self._batches, self._expected)))

    def left(self, looks: int, trials: int) -> float:
        """Seconds that so many first looks and so many other trials will take."""
        batches = self._seconds(self._batches, self._expected)
        return looks * self._seconds(self._looks, batches) + trials * batches

    def _seconds(self, rate: _Rate, otherwise: float) -> float:
        return rate.seconds / rate.trials if rate.trials else otherwise
