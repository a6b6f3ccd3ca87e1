"""Is the library right? Its numbers against ONNX Runtime's.

Tolerance, by the output's dtype; an element is right if |a - e| <= atol x scale + rtol x |e|,
where scale is the largest finite |e| of that output, so that cancellation near zero is judged
by the magnitudes it came from:

    float64            atol 1e-9   rtol 1e-7
    float32            atol 1e-4   rtol 1e-3
    float16, bfloat16  atol 1e-2   rtol 1e-2
    int8, uint8        within 1 (a rounding step of a quantised value)
    other integers, bool, strings: equal

NaN must meet NaN, and an infinity the same infinity.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..errors import ModelError
from ..system.machine_fault import heed
from .draws import seeded_inputs

if TYPE_CHECKING:
    from pathlib import Path

    import onnx

    from ..runtime.model import Interface, TensorInfo


_FLOAT = {
    "float64": (1e-9, 1e-7),
    "float32": (1e-4, 1e-3),
    "float16": (1e-2, 1e-2),
    "bfloat16": (1e-2, 1e-2),
}
_STEP = ("int8", "uint8")


class Runnable(Protocol):
    """What can be called with a model's inputs by name."""

    interfaces: list[Interface]

    def __call__(self, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """The outputs by name."""


class Library(Runnable, Protocol):
    """A library where it runs: a `runtime.Model` here, or a `devices.model.RemoteModel`."""

    path: Path
    manifest: dict[str, Any]

    def times(self, inputs: dict[str, np.ndarray], runs: int) -> list[float]:
        """Seconds of each of so many runs, one after the other."""


@dataclass(frozen=True)
class Verification:
    """The library's outputs beside the oracle's on seeded inputs. Errors are maxima.

    max_rel_err: largest |a - e| over the output's scale (its largest finite |e|).
    """

    ok: bool
    max_abs_err: float
    max_rel_err: float
    oracle: str
    seed: int


class Oracle:
    """ONNX Runtime on a model; ModelError if it refuses the model. threads: 0 for all cores.

    Made before the costly part of a build: what cannot be verified is not worth tuning.
    """

    def __init__(self, proto: onnx.ModelProto, threads: int = 0) -> None:
        # It would keep an identifier of this machine in the home directory, and call its makers.
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        import onnxruntime

        self.name = f"onnxruntime {onnxruntime.__version__}"
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = threads
        # Its idle threads would spin beside the code that is measured between two questions.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(
                proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            heed(error)
            raise _refused("refuses", error) from error

    def ask(
        self, inputs: Sequence[TensorInfo], seed: int
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """(seeded inputs, outputs).

        Integer inputs are tried as indices of shrinking range: a graph does not say how many
        rows the table has that they look into.
        """
        names = [output.name for output in self._session.get_outputs()]
        for upper in (64, 8, 2, 1):
            feed = seeded_inputs(inputs, seed, upper)
            try:
                return feed, dict(zip(names, self._session.run(names, feed), strict=True))
            except Exception as error:  # noqa: BLE001 - as above
                heed(error)
                failure = error
        raise _refused("cannot run", failure) from failure


def verify_model(model: Runnable, oracles: Sequence[Oracle], seed: int) -> Verification:
    """Run the library and the oracles on the same seeded inputs and compare every output.

    oracles: one of each of the library's interfaces; the errors are maxima over all.
    """
    verdicts = []
    for interface, oracle in zip(model.interfaces, oracles, strict=True):
        inputs, expected = oracle.ask(interface.inputs, seed)
        actual = model(**inputs)
        verdicts += [compare(actual[name], expected[name]) for name in expected]
    return Verification(
        ok=all(ok for ok, _, _ in verdicts),
        max_abs_err=max(abs_err for _, abs_err, _ in verdicts),
        max_rel_err=max(rel_err for _, _, rel_err in verdicts),
        oracle=oracles[0].name,
        seed=seed,
    )


def _refused(how: str, error: Exception) -> ModelError:
    return ModelError(
        f"ONNX Runtime {how} the model: {str(error).strip().splitlines()[0]}",
        "mend the model, or build it with --no-verify: nothing can be verified without an oracle",
    )


def compare(actual: np.ndarray, expected: np.ndarray) -> tuple[bool, float, float]:
    """(within tolerance, largest absolute error, largest error over the output's scale)."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False, float("inf"), float("inf")
    if expected.size == 0:
        return True, 0.0, 0.0
    if expected.dtype.name not in _FLOAT:
        return _compare_exact(actual, expected)
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(e)
    same = bool(np.array_equal(a[~finite], e[~finite], equal_nan=True))
    if not same or not np.isfinite(a[finite]).all():
        return False, float("inf"), float("inf")
    error, magnitude = np.abs(a[finite] - e[finite]), np.abs(e[finite])
    if error.size == 0:
        return True, 0.0, 0.0
    atol, rtol = _FLOAT[expected.dtype.name]
    scale = float(magnitude.max()) or 1.0
    ok = bool((error <= atol * scale + rtol * magnitude).all())
    return ok, float(error.max()), float(error.max()) / scale


def _compare_exact(actual: np.ndarray, expected: np.ndarray) -> tuple[bool, float, float]:
    if not np.issubdtype(expected.dtype, np.integer):
        wrong = float((actual != expected).mean())
        return wrong == 0, wrong, wrong
    error = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    # Not by the error alone: a float64 holds no integer beyond 2**53 exactly.
    step = expected.dtype.name in _STEP and error.max() <= 1
    scale = float(np.abs(expected.astype(np.float64)).max()) or 1.0
    ok = step or np.array_equal(actual, expected)
    return bool(ok), float(error.max()), float(error.max()) / scale
