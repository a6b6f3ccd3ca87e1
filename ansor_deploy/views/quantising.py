"""Text on what quantising did to a model's outputs, and what it gained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..system.words import count, size_text
from .text import latency, share

if TYPE_CHECKING:
    from ..ship.quantised import Distance, Gain, Layer, Quantised

SHOWN = 5  # layers that are listed
LEAST = 0.01  # of the error; a layer that causes less is not worth keeping in float


def lines(facts: Quantised) -> Iterator[str]:
    """How far each output is from the float model's, and which layers cause most of it."""
    yield (
        f"quantised by {count(facts.samples, 'sample')}: {size_text(facts.quantised.bytes)} "
        f"instead of {size_text(facts.float_bytes)}"
    )
    yield from (f"{one.output}: {distance_text(one)}" for one in facts.outputs)
    if costly := costliest(facts)[:SHOWN]:
        named = ", ".join(f"{one.name} ({one.op}) {share(one.share)}" for one in costly)
        yield f"of that most by {named}; --keep-float leaves a layer as it was"


def distance_text(one: Distance) -> str:
    """How far an output is from the float model's."""
    if one.rms is None:
        return "how far it is from the float model's is not known"
    largest = "" if one.max_abs_err is None else f", at most {one.max_abs_err:.3g}"
    top = "" if one.same_top is None else f"; the largest element is the same in {one.same_top:.1%}"
    return f"{one.rms:.2%} from the float model's{largest}{top}"


def costliest(facts: Quantised) -> list[Layer]:
    """The layers that cause a noticeable part of the error, the largest first."""
    return [one for one in facts.layers if one.share >= LEAST]


def gain_text(gain: Gain) -> str:
    """How much faster and smaller the library has become."""
    sizes = f"{size_text(gain.int8_bytes)} instead of {size_text(gain.float_bytes)}"
    times = f"{latency(gain.int8_ms / 1e3)} instead of {latency(gain.float_ms / 1e3)} a run"
    said = {"faster": "faster than", "slower": "slower than", "as fast": "as fast as"}
    sure = said.get(gain.verdict, "not surely faster or slower than")
    return f"{sure} the library of the float model: {times} ({gain.ratio:.2f}); {sizes}"


def gain_figure(gain: Gain) -> tuple[str, str]:
    """The gain as a figure, such as "0.45 of its time", and the float library's time."""
    return f"{gain.ratio:.2f} of its time", f"{latency(gain.float_ms / 1e3)} a run without"
