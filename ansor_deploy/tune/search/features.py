"""Features of complete programs, the input of the cost model.

164 numbers for each innermost store statement, after lowering: its arithmetic, the buffers it
touches, arithmetic intensity along the loops, allocations and outer loops (Ansor, section 5.2 and
appendix B, as TVM's `PerStoreFeature` extracts them). They are logarithms of counts, so half
precision is enough for them.
"""

import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...system.machine_fault import raise_if_fault
from ...target import Target

Choice = tuple[str, Any]  # the subject of a question, and the meaning of its answer, for JSON

LENGTH = 164  # features of a statement
_MOST = 1 << 16  # most bytes of a program's choices; hundreds are usual
_BUFFERS, _CURVE_SAMPLES = 5, 10  # parameters of TVM's extractor that make it 164


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
        """An array [stores, 164] of float32 for each schedule; None where its lowering fails."""
        try:
            return self._extract(schedules)
        except (RuntimeError, ValueError) as error:
            raise_if_fault(error)
            if len(schedules) == 1:
                return [None]
        return [self([schedule])[0] for schedule in schedules]

    def _extract(self, schedules: Sequence[Any]) -> list[np.ndarray | None]:
        from ..._tvm import meta_schedule as ms

        # Only a runner looks at a candidate's arguments.
        candidates = [
            ms.MeasureCandidate(_with_padded_packs(schedule), []) for schedule in schedules
        ]
        if not candidates:
            return []
        tensors = self._extractor.extract_from(self._context, candidates)
        return [_rounded(tensor.numpy()) for tensor in tensors]


def _with_padded_packs(schedule: Any) -> Any:
    """The schedule, in which stages that pack weights with zeros behind them count as stores.

    TVM's extractor leaves out what packs weights (`RemoveWeightLayoutRewriteBlock`), and fails if
    that copies under a condition.
    """
    from ..._tvm import collect, op_name, tirx, tvm
    from ...space.packing import ON_CONSTANT

    def is_conditional(block: Any) -> bool:
        stores = collect(block.body, tirx.BufferStore)
        return any(op_name(store.value) == "prim.if_then_else" for store in stores)

    blocks = collect(schedule.mod["main"].body, tvm.s_tir.SBlock)
    packs = [block for block in blocks if ON_CONSTANT in block.annotations]
    if padded := [block.name_hint for block in packs if is_conditional(block)]:
        schedule = schedule.copy()
    for name in padded:
        schedule.unannotate(schedule.get_sblock(name), ON_CONSTANT)
    return schedule


def encode(features: np.ndarray, choices: Sequence[Choice] = ()) -> bytes:
    """Features as compact bytes for the registry: zlib of half-precision rows.

    features: float32 [stores, 164]. choices: the program's choices, which follow as zlib of JSON;
    `decode` ignores them.
    """
    rows = zlib.compress(features.astype("<f2").tobytes())
    return rows + zlib.compress(json.dumps(choices).encode()) if choices else rows


def decode(blob: bytes) -> np.ndarray | None:
    """The features in bytes of `encode`, float32 [stores, 164]; None where they hold none."""
    try:
        rows = np.frombuffer(zlib.decompress(blob), dtype="<f2").reshape(-1, LENGTH)
    except (zlib.error, ValueError):
        return None
    return rows.astype(np.float32) if len(rows) and np.isfinite(rows).all() else None


def decode_choices(blob: bytes) -> list[Choice]:
    """The choices in bytes of `encode`; [] where they hold none."""
    rows = zlib.decompressobj()
    try:
        rows.decompress(blob)
        text = zlib.decompressobj().decompress(rows.unused_data, _MOST)
        return [(str(kind), meaning) for kind, meaning in json.loads(text or "[]")]
    except (zlib.error, ValueError, TypeError, RecursionError):
        return []


def _rounded(found: np.ndarray) -> np.ndarray | None:
    """The features in the registry's precision, so that a restarted model learns the same."""
    if found.ndim != 2 or found.shape[1] != LENGTH or not len(found):
        return None
    limit = np.finfo(np.float16).max
    whole = np.nan_to_num(found, posinf=limit, neginf=-limit).clip(-limit, limit)
    return whole.astype(np.float16).astype(np.float32)


def _context(target: Target) -> Any:
    """The context from which the extractor reads target and threads.

    It is made by the C++ constructor: the one in Python first imports 497 intrinsics, which takes
    15 seconds, and none is used here.
    """
    from ..._tvm import tvm, tvm_target

    make = tvm.get_global_func("s_tir.meta_schedule.TuneContext")
    return make(None, tvm_target(target), None, None, "features", target.cores, 1, None)
