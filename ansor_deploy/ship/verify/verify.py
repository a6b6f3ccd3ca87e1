"""Verify a library: compare its outputs with ONNX Runtime's.

`tolerance.py` defines what counts as right, and `edges.py` has the edge values that are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from msgspec import field

from ...errors import ModelError, UsageError
from ...runtime.out_of_range import COMPUTED
from ..manifest import Errors
from .branches import Feed, branch_draws
from .edges import Usual, check_edges
from .exact import exact_outputs, exactly_wrong, judge_exactly
from .judges import Arrays, Tolerances, judge_outputs, wrong_text
from .oracle import Oracle
from .tolerance import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from ...model.graph.places import Place
    from ...runtime.batches import Batches
    from ...runtime.interface import Interface, TensorInfo
    from ...runtime.lengths import Lengths


class Runnable(Protocol):
    """Anything that can be called with a model's inputs by name."""

    interfaces: list[Interface]
    batches: Batches | Lengths | None

    def __call__(self, /, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """The outputs by name."""


class Library(Runnable, Protocol):
    """A library where it runs: a `runtime.Model` here, or a `devices.remote_model.RemoteModel`."""

    path: Path
    manifest: dict[str, Any]

    def times(self, inputs: dict[str, np.ndarray], runs: int) -> list[float]:
        """Seconds of each run of `runs`, one after the other."""


class Verification(Errors, frozen=True):
    """The comparison of a library's outputs with the oracle's on seeded inputs. Errors are maxima.

    wrong: the names of wrong outputs, with a message for each. unreached: the branches that no
    inputs chose, in words.
    """

    wrong: dict[str, str] = field(default_factory=dict)
    unreached: tuple[str, ...] = ()

    @property
    def errors(self) -> Errors:
        """The errors as they are in a manifest."""
        return Errors(**{name: getattr(self, name) for name in Errors.__struct_fields__})


def interfaces_tried(model: Runnable) -> list[Interface]:
    """The interfaces of a library in each of its shapes, and of a batch that it runs in parts."""
    return [*model.interfaces, *(model.batches.tried if model.batches else ())]


def verify_model(
    model: Runnable,
    oracles: Sequence[Oracle],
    seed: int,
    allowed: Tolerances = MappingProxyType({}),
    islands: Sequence[Place] | None = None,
) -> Verification:
    """Run the library and the oracles on the same seeded inputs and compare every output.

    oracles: one for each of `interfaces_tried`; the errors are maxima over all. allowed: the
    differences that the user allows instead of the oracle's. islands: where a quantised network may
    give other bytes on another processor (`islands.py`): outputs that depend on none are also
    compared with an evaluation in NumPy, bit for bit. A right library is also tried on edge values
    (`edges.py`); VerificationError where one of these fails.
    """
    found = _Found(model, allowed)
    for shape, (interface, oracle) in enumerate(zip(interfaces_tried(model), oracles, strict=True)):
        if all(0 in output.shape for output in interface.outputs):
            continue  # all outputs are empty
        _check_inputs(interface.inputs)
        built = shape if shape < len(model.interfaces) else 0  # for parts, the first shape's
        here = islands and [place for place in islands if place.shape == built]
        inputs, expected = oracle.ask(interface.inputs, seed)
        if not found.has_room(oracle, inputs, expected, here):
            continue
        if not found.wrong:
            check_edges(model, Usual(oracle, inputs, expected, allowed))
        if not found.wrong:
            found.branches(oracle, inputs, here)
    found.insist()
    return _verification(found, oracles[0], seed)


@dataclass
class _Found:
    """The results of comparing a library so far, as fields of a `Verification`."""

    model: Runnable
    allowed: Tolerances
    verdicts: list[Verdict] = dataclass_field(default_factory=list)
    wrong: dict[str, str] = dataclass_field(default_factory=dict)
    exact: set[str] = dataclass_field(default_factory=set)
    unreached: list[str] = dataclass_field(default_factory=list)
    no_room: UsageError | None = None

    def has_room(
        self, oracle: Oracle, inputs: Arrays, expected: Arrays, islands: Sequence[Place] | None
    ) -> bool:
        """Compare as `compare` does; whether the library has room for what it computes."""
        try:
            self.compare(oracle, inputs, expected, islands)
        except UsageError as error:
            if COMPUTED not in error.text:
                raise
            self.no_room = error
            given = " ".join(f"{name}={','.join(map(str, a.shape))}" for name, a in inputs.items())
            self.unreached.append(f"a run of {given} that needs no more room")
            return False
        return True

    def insist(self) -> None:
        """ModelError where the library had room for none of the runs."""
        if self.no_room and not self.verdicts:
            raise ModelError(
                f"seeded inputs need more room than the library has: {self.no_room.text}",
                "build it with --no-verify, and verify it with inputs of yours: verify --input",
            )

    def compare(
        self, oracle: Oracle, inputs: Arrays, expected: Arrays, islands: Sequence[Place] | None
    ) -> None:
        """Compare the library's outputs for inputs with the expected outputs."""
        actual = self.model(**inputs)
        judged = judge_outputs(actual, expected, oracle, dict(inputs), self.allowed)
        self.verdicts += judged.values()
        self.wrong |= {name: wrong_text(name, one) for name, one in judged.items() if not one.ok}
        known = exact_outputs(oracle.proto, islands, inputs)
        for name, verdict in judge_exactly(actual, known, self.allowed):
            self.exact.add(name)
            if not verdict.ok:
                self.wrong.setdefault(name, exactly_wrong(name, verdict))

    def branches(self, oracle: Oracle, usual: Feed, islands: Sequence[Place] | None) -> None:
        """Compare the outputs of the branches that the usual inputs do not choose."""
        drawn, unreached = branch_draws(oracle.proto, usual)
        for one in drawn:
            try:
                expected = oracle.outputs(one.feed)
            except ModelError:
                unreached.append(one.words)
                continue
            self.compare(oracle, one.feed, expected, islands)
            if self.wrong:
                self.wrong = {name: f"in {one.words} {why}" for name, why in self.wrong.items()}
                return
        self.unreached += [words for words in unreached if words not in self.unreached]


def verify_on(
    model: Runnable, oracle: Oracle, inputs: dict[str, np.ndarray], allowed: Tolerances
) -> Verification:
    """Verify as `verify_model` does, on these inputs alone. oracle: one for the inputs' shapes."""
    found = _Found(model, allowed)
    found.compare(oracle, inputs, oracle.outputs(inputs), None)
    return _verification(found, oracle, 0)


def _verification(found: _Found, oracle: Oracle, seed: int) -> Verification:
    """The verdicts on all outputs combined: errors are maxima."""
    return Verification(
        ok=not found.wrong,
        max_abs_err=max((one.abs_err for one in found.verdicts), default=0.0),
        max_rel_err=max((one.rel_err for one in found.verdicts), default=0.0),
        oracle=oracle.name,
        seed=seed,
        exact=tuple(sorted(found.exact)),
        wrong=found.wrong,
        unreached=tuple(found.unreached),
    )


def _check_inputs(inputs: Sequence[TensorInfo]) -> None:
    """ModelError where an input is empty: ONNX Runtime ends the process on some such models."""
    for tensor in inputs:
        if 0 in tensor.shape:
            raise ModelError(
                f"input '{tensor.name}' is empty, and so the model's outputs cannot be verified",
                "give it another --input-shape, or build the model with --no-verify",
            )
