"""Libraries of one operator, run on unusual inputs and compared with ONNX Runtime.

Each kind of input is given to both. Where ONNX Runtime refuses an input, such as an index out of
range, the library must refuse it, too; where both answer, outputs are compared as a build does it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

from ansor_deploy.errors import AnsorError
from ansor_deploy.runtime.model import load
from benchmarks.fuzz.conformance_cases import bound, cases, fault

_TINY = 1e-40  # a subnormal float32

Fill = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def _all(value: float) -> Fill:
    return lambda rng, like: np.full_like(like, _fitting(value, like.dtype))


def _some(*values: float) -> Fill:
    """Fill a quarter of the elements with these values."""

    def fill(rng: np.random.Generator, like: np.ndarray) -> np.ndarray:
        found = _random(rng, like)
        odd = np.array([_fitting(value, like.dtype) for value in values])
        return np.where(rng.random(like.shape) < 0.25, rng.choice(odd, like.shape), found)

    return fill


def _random(rng: np.random.Generator, like: np.ndarray) -> np.ndarray:
    return rng.permuted(like.reshape(-1)).reshape(like.shape)


def _fitting(value: float, dtype: np.dtype[Any]) -> Any:
    """The value in this type; for integers the nearest, and zero for NaN."""
    if dtype == np.bool_:
        return bool(value)
    if np.issubdtype(dtype, np.integer):
        ends = np.iinfo(dtype)
        return 0 if np.isnan(value) else int(min(max(value, ends.min), ends.max))
    return value


KINDS: dict[str, Fill] = {
    "as in the test": lambda rng, like: like,
    "shuffled": _random,
    "zeros": _all(0),
    "ones": _all(1),
    "minus ones": _all(-1),
    "NaN": _all(float("nan")),
    "infinity": _all(float("inf")),
    "-infinity": _all(float("-inf")),
    "some special": _some(float("nan"), float("inf"), float("-inf"), 0, -0.0),
    "some huge": _some(3e38, -3e38, 1e9, -1e9),
    "some tiny": _some(_TINY, -_TINY, 1e-45),
    "some bounds": _some(0, -1, 1, 2, 3, 4, 5, -5, -2, -3),
    "ends of the type": _some(1e30, -1e30),
}  # fmt: skip


def write(payload: dict[str, Any]) -> str:
    """Write the model of a case: {"case", "path"}."""
    proto, _ = _bound(payload["case"])
    onnx.save(proto, payload["path"])
    return ""


def expected(payload: dict[str, Any]) -> dict[str, str]:
    """Write ONNX Runtime's answer to a kind of input; {"said": why it refuses, or ""}.

    payload: {"case", "path": of the model, "kind", "answer": the file to write}
    """
    import onnxruntime

    feeds = _feeds(payload["case"], payload["kind"])
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            payload["path"], options, providers=["CPUExecutionProvider"]
        )
        answers = session.run(None, feeds)
    except Exception as error:  # noqa: BLE001 - its errors have no common type
        return {"said": str(error)[:300] or "refused"}
    if any(not isinstance(one, np.ndarray) for one in answers):
        return {"said": "an answer that is no tensor"}
    np.savez(payload["answer"], *answers)
    return {"said": ""}


def differs(payload: dict[str, Any]) -> dict[str, Any]:
    """Compare a library with ONNX Runtime on an input of {"case", "library", "kind", "answer"}.

    Returns {"end": "done", "refused", or "differs" if the answer's file exists and differs; "said":
    why; "seconds"}.
    """
    began = time.perf_counter()
    feeds, answer = _feeds(payload["case"], payload["kind"]), Path(payload["answer"])
    end, said = "done", ""
    try:
        found = load(Path(payload["library"]))(**feeds)
    except AnsorError as error:
        end, said, found = "refused", str(error), {}
    if found and answer.exists():
        with np.load(answer, allow_pickle=False) as stored:
            wanted = [stored[name] for name in stored.files]
        pairs = zip(found.values(), wanted, strict=True)
        said = "; ".join(filter(None, (fault(have, want) for have, want in pairs)))
        end = "differs" if said else end
    return {"end": end, "said": said, "seconds": time.perf_counter() - began}


def _bound(name: str) -> tuple[ModelProto, list[Any]]:
    case = cases()[name]
    return bound(case, case.data_sets[0][0])


def _feeds(name: str, kind: str) -> dict[str, np.ndarray]:
    proto, given = _bound(name)
    rng = np.random.default_rng(0)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return {
            value.name: np.asarray(KINDS[kind](rng, np.asarray(one)), np.asarray(one).dtype)
            for value, one in zip(proto.graph.input, given, strict=True)
        }
