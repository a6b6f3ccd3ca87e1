"""The cost model ranks programs by the measurements of others (Ansor, section 5.2).

Gradient-boosted trees give a score to each statement; a program's score is their sum. The label is
y = best latency of the task / latency, in (0, 1], and 0 for a failure. The loss of a program is
y (sum of scores - y)^2, so that fast programs are distinguished best.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...system.atomic_file import write_whole
from ...system.ownership import others_may_write
from .features import LENGTH

# Least weight of a program. A failure, with the label 0, has it: enough to avoid programs like it.
LEAST_WEIGHT = 0.1
# Programs that are needed for the first model.
FIRST = 16
# The model is trained again when programs have grown by this share.
SHARE = 0.2
# The model is trained again after this many new programs at the latest.
MOST = 64
# The model learns from this many of the newest programs, which bounds time and memory.
MEMORY = 8192
# How many trees are trained.
ROUNDS = 60
_SEAL = 32  # bytes of a SHA-256
_OURS = 0o644  # others may not write the file, whatever the umask is: else it is not read again
_PARAMETERS = {
    "max_depth": 6,
    "eta": 0.2,
    "gamma": 0.001,
    "min_child_weight": 0,
    "tree_method": "hist",
    "max_bin": 64,
    "base_score": 0.0,
    "disable_default_eval_metric": 1,
    # XGBoost's threads spin: on a busy machine two take ten times as long as one.
    "nthread": 1,
    "seed": 43,
    "verbosity": 0,
}


class CostModel:
    """One model for all tasks of a target.

    path: the file that keeps it between runs, in XGBoost's own format; None for no file. warn:
    called with a sentence where a kept model cannot be read, and is trained anew, or cannot be
    written. samples: the measurements it learns from: latency and features by task and trace.
    """

    def __init__(
        self, path: Path | None = None, warn: Callable[[str], None] = lambda message: None
    ) -> None:
        self._path, self._warn = path, warn
        self.samples: dict[tuple[str, str], tuple[float, np.ndarray]] = {}
        self._booster: Any = None
        self._learnt = 0
        self._load()

    @property
    def trained(self) -> bool:
        """Whether there is a model to predict with."""
        return self._booster is not None

    def add(self, task: str, trace: str, latency: float, features: np.ndarray) -> None:
        """Add a measurement; it replaces an earlier one of the same program.

        task: the workload's key. latency: seconds, infinite for a failure. features: float32
        [stores, 164].
        """
        self.samples[task, trace] = latency, features

    def update(self) -> bool:
        """Train the model if enough was added since the last time. Returns whether it did."""
        count = len(self.samples)
        worth = min(MOST, max(1, int(self._learnt * SHARE)))
        if count < FIRST or (self.trained and abs(count - self._learnt) < worth):
            return False
        self._train(list(self.samples)[-MEMORY:])
        self._learnt = count
        return True

    def predict(self, features: Sequence[np.ndarray]) -> np.ndarray:
        """Scores of programs, float64 [programs]: higher is faster, and only the order matters.

        features: float32 [stores, 164] of each program.
        """
        if not features or not self.trained:
            return np.zeros(len(features))
        scores = self._booster.predict(_matrix(features), output_margin=True)
        return _sums(scores, [len(rows) for rows in features])

    def save(self) -> None:
        """Save the model for the next run; if it cannot be written, there is only a warning."""
        if self._path is None or not self.trained:
            return
        self._booster.set_attr(programs=str(self._learnt))
        model = bytes(self._booster.save_raw("ubj"))
        try:
            write_whole(self._path, model + hashlib.sha256(model).digest(), _OURS)
        except OSError as error:
            self._warn(f"{self._path}: the cost model is not kept: {error.strerror}")

    def _train(self, programs: Sequence[tuple[str, str]]) -> None:
        import xgboost

        latencies, features = zip(*(self.samples[program] for program in programs), strict=True)
        labels = _labels([task for task, _ in programs], latencies)
        loss = _loss(labels, [len(rows) for rows in features])
        self._booster = xgboost.train(_PARAMETERS, _matrix(features), ROUNDS, obj=loss)

    def _load(self) -> None:
        if self._path is None or not self._path.exists() or others_may_write(self._path):
            return  # XGBoost's reader must not see a file that others may have written
        import xgboost

        try:
            booster = xgboost.Booster(_PARAMETERS)
            booster.load_model(bytearray(_unsealed(self._path.read_bytes())))
            learnt = int(booster.attr("programs") or 0)
            booster.predict(_matrix([np.zeros((1, LENGTH))]))
        except (OSError, ValueError, xgboost.core.XGBoostError):
            self._warn(f"{self._path}: the cost model is damaged, and is made again")
            return
        self._booster, self._learnt = booster, learnt


def _unsealed(data: bytes) -> bytes:
    """The model without the SHA-256 behind it; ValueError where that does not match.

    XGBoost's reader crashes the process on damaged bytes.
    """
    model, seal = data[:-_SEAL], data[-_SEAL:]
    if hashlib.sha256(model).digest() != seal:
        raise ValueError("the model is not as it was written")
    return model


def _matrix(features: Sequence[np.ndarray]) -> Any:
    import xgboost

    return xgboost.DMatrix(np.concatenate(features), nthread=1)


def _labels(tasks: Sequence[str], latencies: Sequence[float]) -> np.ndarray:
    """The best latency of each program's task divided by its own; 0 for failures."""
    best: dict[str, float] = {}
    for task, latency in zip(tasks, latencies, strict=True):
        best[task] = min(latency, best.get(task, np.inf))
    found = [one < np.inf and best[task] / one for task, one in zip(tasks, latencies, strict=True)]
    return np.array(found, dtype=np.float64)


def _loss(
    labels: np.ndarray, lengths: Sequence[int]
) -> Callable[[np.ndarray, Any], tuple[np.ndarray, np.ndarray]]:
    """A function for the gradient and curvature of the sums' weighted squared error, by statement.

    lengths: the number of statements of each program. All statements of a program change at once,
    so each gets the curvature of the whole sum; otherwise they would overshoot together.
    """
    weights = np.maximum(labels, LEAST_WEIGHT)
    curvature = np.repeat(weights * lengths, lengths)

    def loss(scores: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        error = weights * (_sums(scores, lengths) - labels)
        return np.repeat(error, lengths), curvature

    return loss


def _sums(scores: np.ndarray, lengths: Sequence[int]) -> np.ndarray:
    """The sum of the scores of each program's statements."""
    return np.add.reduceat(scores.astype(np.float64), np.cumsum([0, *lengths[:-1]]))
