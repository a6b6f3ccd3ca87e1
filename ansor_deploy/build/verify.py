"""Is the library right? Its numbers against ONNX Runtime's.

What counts as right is in `tolerance.py`, and what is tried beside ordinary numbers in `edges.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..errors import ModelError
from ..system.machine_fault import heed
from .draws import seeded_inputs
from .edges import check_edges, index_extents
from .onnx_runtime import open_session, version
from .tolerance import compare

if TYPE_CHECKING:
    from pathlib import Path

    import onnx

    from ..runtime.model import Interface, TensorInfo


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

    extents: how many rows there are where an input of indices looks, by its name.

    Made before the costly part of a build: what cannot be verified is not worth tuning.
    """

    def __init__(self, proto: onnx.ModelProto, threads: int = 0) -> None:
        self.name = f"onnxruntime {version()}"
        self.extents = index_extents(proto)
        try:
            # Its idle threads would spin beside the code that is measured between two questions.
            self._session = open_session(proto.SerializeToString(), threads, spins=False)
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
        for upper in (64, 8, 2, 1):
            feed = seeded_inputs(inputs, seed, upper)
            try:
                return feed, self.outputs(feed)
            except ModelError as error:
                failure = error
        raise failure

    def outputs(self, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What ONNX Runtime makes of inputs; ModelError if it refuses them."""
        names = [output.name for output in self._session.get_outputs()]
        try:
            return dict(zip(names, self._session.run(names, feed), strict=True))
        except Exception as error:
            heed(error)
            raise _refused("cannot run", error) from error


def verify_model(model: Runnable, oracles: Sequence[Oracle], seed: int) -> Verification:
    """Run the library and the oracles on the same seeded inputs and compare every output.

    oracles: one of each of the library's interfaces; the errors are maxima over all. What is right
    is tried on edge values as well (`edges.py`), of which VerificationError names one that fails.
    """
    verdicts = []
    for interface, oracle in zip(model.interfaces, oracles, strict=True):
        if all(0 in output.shape for output in interface.outputs):
            continue  # there is nothing to compare
        _check_inputs(interface.inputs)
        inputs, expected = oracle.ask(interface.inputs, seed)
        actual = model(**inputs)
        verdicts += [compare(actual[name], expected[name]) for name in expected]
        if all(ok for ok, _, _ in verdicts):
            check_edges(model, oracle, inputs, expected)
    return Verification(
        ok=all(ok for ok, _, _ in verdicts),
        max_abs_err=max((abs_err for _, abs_err, _ in verdicts), default=0.0),
        max_rel_err=max((rel_err for _, _, rel_err in verdicts), default=0.0),
        oracle=oracles[0].name,
        seed=seed,
    )


def _check_inputs(inputs: Sequence[TensorInfo]) -> None:
    """ModelError where an input is empty: ONNX Runtime ends the process on some such models."""
    for one in inputs:
        if 0 in one.shape:
            raise ModelError(
                f"input '{one.name}' is empty, and so the model's outputs cannot be verified",
                "give it another --input-shape, or build the model with --no-verify",
            )


def _refused(how: str, error: Exception) -> ModelError:
    return ModelError(
        f"ONNX Runtime {how} the model: {str(error).strip().splitlines()[0]}",
        "mend the model, or build it with --no-verify: nothing can be verified without an oracle",
    )
