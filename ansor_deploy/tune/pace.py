"""How long a trial takes in this run, for estimates of the time left."""

from dataclasses import dataclass


@dataclass
class _Rate:
    trials: int = 0
    seconds: float = 0.0


class Pace:
    """The seconds of a trial, apart for first looks and batches: a look waits for its one build.

    expected: seconds of a trial until a batch has ended.
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
        """How many trials of a batch fit into this many seconds; at least one."""
        return max(1, int(seconds / self._seconds(self._batches, self._expected)))

    def left(self, looks: int, trials: int) -> float:
        """Seconds that these numbers of first looks and of other trials will take."""
        batches = self._seconds(self._batches, self._expected)
        return looks * self._seconds(self._looks, batches) + trials * batches

    def _seconds(self, rate: _Rate, otherwise: float) -> float:
        return rate.seconds / rate.trials if rate.trials else otherwise
