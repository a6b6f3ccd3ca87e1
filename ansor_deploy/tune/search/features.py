"""Features of complete programs: what the cost model sees of a candidate.

164 numbers for each innermost store statement, after lowering: its arithmetic, the buffers it
touches, arithmetic intensity along the loops, allocations and outer loops (Ansor, section 5.2 and
appendix B, as TVM's `PerStoreFeature` extracts them). They are logarithms of what they count, so
half precision holds them.
"""

import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...system.machine_fault import raise_if_fault
from ...target import Target

Choice = tuple[str, Any]  # what was asked, and what the answer means: JSON either way

LENGTH = 164
_MOST = 1 << 16  # bytes of a program's choices; hundreds are usual
_BUFFERS, _CURVE_SAMPLES = 5, 10  # which make it 164


class Extractor:
    """Extracts features of schedules for one target, on as many threads as it has cores."""

    def __init__(self, target: Target) -> None:
        from ..._tvm import meta_schedule as ms

        self._context = _context(target)
        self._extractor = ms.feature_extractor.PerStoreFeature(
            buffers_per_store=_BUFFERS,
            arith_intensity_curve_num_samples=_CURVE_SAMPLES,
            cache_line_bytes=target.cache_line_bytes,
        )

    def __call__(self, schedules: Sequence[Any]) -> list[np.ndarray | None]:
        """An array [stores, 164] of float32 a schedule; None where lowering it fails."""
        try:
            return self._extract(schedules)
        except (RuntimeError, ValueError) as error:
            raise_if_fault(error)
            if len(schedules) == 1:
                return [None]
        return [self([schedule])[0] for schedule in schedules]

    def _extract(self, schedules: Sequence[Any]) -> list[np.ndarray | None]:
        from ..._tvm import meta_schedule as ms

        # Arguments are only looked at by what runs a candidate.
        candidates = [ms.MeasureCandidate(schedule, []) for schedule in schedules]
        if not candidates:
            return []
        tensors = self._extractor.extract_from(self._context, candidates)
        return [_rounded(tensor.numpy()) for tensor in tensors]


def encode(features: np.ndarray, choices: Sequence[Choice] = ()) -> bytes:
    """Features in few bytes, for the registry: zlib of half-precision rows.

    features: float32 [stores, 164]. choices: what was decided for the program; it follows as zlib
    of JSON, past which `decode` does not look.
    """
    rows = zlib.compress(features.astype("<f2").tobytes())
    return rows + zlib.compress(json.dumps(choices).encode()) if choices else rows


def decode(blob: bytes) -> np.ndarray | None:
    """The features of an `encode`, float32 [stores, 164]; None where the bytes are none."""
    try:
        rows = np.frombuffer(zlib.decompress(blob), dtype="<f2").reshape(-1, LENGTH)
    except (zlib.error, ValueError):
        return None
    return rows.astype(np.float32) if len(rows) and np.isfinite(rows).all() else None


def decode_choices(blob: bytes) -> list[Choice]:
    """The choices of an `encode`; none where the bytes hold no such choices."""
    rows = zlib.decompressobj()
    try:
        rows.decompress(blob)
        text = zlib.decompressobj().decompress(rows.unused_data, _MOST)
        return [(str(kind), meaning) for kind, meaning in json.loads(text or "[]")]
    except (zlib.error, ValueError, TypeError, RecursionError):
        return []


def _rounded(found: np.ndarray) -> np.ndarray | None:
    """The features in the precision of the registry: a restarted model learns the same."""
    if found.ndim != 2 or found.shape[1] != LENGTH or not len(found):
        return None
    limit = np.finfo(np.float16).max
    whole = np.nan_to_num(found, posinf=limit, neginf=-limit).clip(-limit, limit)
    return whole.astype(np.float16).astype(np.float32)


def _context(target: Target) -> Any:
    """What the extractor reads target and threads from.

    It is made by its constructor in C++: the one in Python first imports 497 intrinsics, of which
    none is looked at here, at the cost of 15 seconds.
    """
    from ..._tvm import tvm, tvm_target

    make = tvm.get_global_func("s_tir.meta_schedule.TuneContext")
    return make(None, tvm_target(target), None, None, "features", target.cores, 1, None)
