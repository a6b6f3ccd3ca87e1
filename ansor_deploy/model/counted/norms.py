"""Norms of groups of channels of images with sizes that a run decides, where the images lie.

Exporters write such a norm between two reshapes. Rows of a group's elements would have to be put
behind one another, element by element, so the image in front of the first reshape is normalised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..graph.graph import FLOATS
from .known import Axes, Step
from .reshapes import into
from .sums import elements

_FIRST = 2  # the first spatial axis, behind those of images and channels
_PER_CHANNEL = 21  # from this opset on, GroupNormalization has a scale for each channel


def by_instance(step: Step) -> list[tuple[str, Axes]] | None:
    """Normalisation of each channel, or of each group that a Reshape made a channel."""
    own, shape = step.axes(0), step.known_shape(step.input(0))
    if not shape or 1 in own or step.dtype(step.input(0)) not in FLOATS:
        return None
    count = elements(step, list(range(_FIRST, len(shape))))
    source = step.facts.sources.get(step.input(0), "")
    image = source if _has_groups(step, source) else step.input(0)
    scale, bias = (step.reshape(step.input(at), 1, -1, 1) for at in (1, 2))
    made = _Groups.of(step, image, shape[1]).normalised(count, scale, bias)
    if image != source:
        return [(made, own)]
    step.facts.axes[made] = step.facts.axes.get(image, {})
    step.facts.sources[step.node.output[0]] = made
    return [into(step, made, step.dims(0))]


def by_group(step: Step) -> list[tuple[str, Axes]] | None:
    """GroupNormalization."""
    own, shape = step.axes(0), step.known_shape(step.input(0))
    if not shape or 1 in own or step.dtype(step.input(0)) not in FLOATS:
        return None
    groups = _Groups.of(step, step.input(0), step.attribute("num_groups", 1))
    each = groups.channels if step.graph.opset >= _PER_CHANNEL else 1
    scale, bias = (step.reshape(step.input(at), 1, groups.number, each) for at in (1, 2))
    inside = elements(step, list(range(_FIRST, len(shape))))
    count = step("Mul", inside, step.constant(groups.channels, step.dtype(step.input(0))))
    return [(groups.normalised(count, scale, bias), own)]


def _has_groups(step: Step, source: str) -> bool:
    """Whether the channels of an image are in groups in the first input: one row for each."""
    shape, image = step.shape(step.input(0)), step.known_shape(source)
    if not image or len(shape) != _FIRST + 1 or len(image) <= _FIRST:
        return False
    same = step.dims(0)[0] == step.facts.dims(source)[0]
    return same and 1 not in step.facts.axes.get(source, {}) and not image[1] % shape[1]


class _Groups(NamedTuple):
    """An image (N, C, ...) whose channels are in groups. number: of groups. channels: of each."""

    step: Step
    image: str
    number: int
    channels: int

    @classmethod
    def of(cls, step: Step, image: str, number: int) -> _Groups:
        return cls(step, image, number, step.shape(image)[1] // number)

    def normalised(self, size: str, scale: str, bias: str) -> str:
        """The image, normalised.

        size: a scalar, how many of a group count. scale, bias: of a shape (1, groups, 1), or
        with as many numbers as there are channels in a group.
        """
        step, kind = self.step, self.step.dtype(self.image)
        apart = step("Sub", self.image, self._spread(self._mean(self.image, size)))
        variance = self._mean(step("Mul", apart, apart), size)
        steady = step("Add", variance, step.constant(step.attribute("epsilon", 1e-5), kind))
        factor = step("Div", scale, step("Sqrt", steady))
        return step("Add", step("Mul", apart, self._spread(factor)), self._spread(bias))

    def _mean(self, name: str, size: str) -> str:
        """The mean of each group (N, groups, 1): first each channel is added up where it lies."""
        step, shape = self.step, self.step.shape(self.image)
        axes = range(_FIRST, len(shape))
        own = step.facts.axes.get(self.image, {})
        within = {at: n for at, n in own.items() if at >= _FIRST}
        total = step.reduce_in_turn("ReduceSum", step.masked(name, within), axes)
        total = step.reshape(total, shape[0], self.number, self.channels)
        return step("Div", step.reduce("ReduceSum", total, 2) if self.channels > 1 else total, size)

    def _spread(self, name: str) -> str:
        """A tensor of groups (N, groups, 1), of channels (N, C, 1, ...)."""
        step, rank = self.step, len(self.step.shape(self.image))
        if step.shape(name)[-1] != self.channels:
            sizes = step.numbers(step.shape(name)[0], self.number, self.channels)
            name = step("Expand", name, sizes)
        return step.reshape(name, step.shape(name)[0], -1, *[1] * (rank - _FIRST))


RULES: dict[str, Callable[[Step], list[tuple[str, Axes]] | None]] = {
    "GroupNormalization": by_group,
    "InstanceNormalization": by_instance,
}
