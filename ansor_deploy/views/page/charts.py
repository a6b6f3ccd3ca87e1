"""Charts as SVG, with colours from the page's style: light, dark and printed.

There are two kinds, of some dozen marks each. A library for them would add a megabyte of script to
every report, or a stack of packages that make pictures without style sheets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from ...system.words import count

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 16, 44

Point = tuple[float, float]


@dataclass(frozen=True)
class Mark:
    """A point of a scatter plot.

    text: its tooltip. size: its radius, in pixels. kind: a class of the page's style.
    """

    x: float
    y: float
    text: str
    size: float = 4.0
    kind: str = "tuned"


@dataclass(frozen=True)
class Axis:
    """A chart's axis, which maps values to pixels.

    name: with its unit. low, high: the values at its ends. start, end: the pixels at its ends.
    logarithmic: powers of ten have equal distances.
    """

    name: str
    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value."""
        low, high, here = (self._scaled(one) for one in (self.low, self.high, value))
        share = (here - low) / (high - low or 1.0)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """The values of two to six tick marks."""
        if self.logarithmic:
            least, most = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            every = max(1, math.ceil((most - least) / 5))
            return [10.0**power for power in range(least, most + 1, every)]
        step = _round_step((self.high - self.low) / 4)
        first = math.ceil(self.low / step)
        return [number * step for number in range(first, math.floor(self.high / step) + 1)]

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.logarithmic else value


def roofline(marks: Sequence[Mark], peak: float, bandwidths: Sequence[float]) -> str:
    """Kernels by their FLOP for each byte, below the limits of a machine.

    marks: x in FLOP a byte, y in GFLOP/s. peak: in GFLOP/s. bandwidths: those of each cache and of
    memory, in GB/s; a roof is drawn for each.
    """
    ridges = [peak / one for one in bandwidths]
    xs, ys = [one.x for one in marks] + ridges, [one.y for one in marks] + [peak]
    x = _across("FLOP a byte", min(xs) / 2, max(xs) * 2, logarithmic=True)
    y = _up("GFLOP/s", min(ys) / 2, max(ys) * 1.5, logarithmic=True)
    roofs = [_line(_roof(x, y, peak, one), x, y, "roof") for one in bandwidths]
    fastest = max(bandwidths)
    kernels = count(len(marks), "kernel")
    said = f"Roofline: {kernels} below {peak:.0f} GFLOP/s and {fastest:.0f} GB/s"
    return _figure(said, x, y, *roofs, *(_dot(one, x, y) for one in marks))


def _roof(x: Axis, y: Axis, peak: float, bandwidth: float) -> list[Point]:
    low = max(x.low, y.low / bandwidth)
    return [(low, low * bandwidth), (peak / bandwidth, peak), (x.high, peak)]


def steps(points: Sequence[Point], title: str, *, small: bool = False, unit: str = "trials") -> str:
    """A latency that falls over trials. points: (trials or another unit, milliseconds)."""
    end, worst = points[-1][0], max(value for _, value in points)
    size = (WIDTH // 2, HEIGHT // 2) if small else (WIDTH, HEIGHT)
    x, y = _across(unit, 0.0, end or 1.0, size[0]), _up("ms", 0.0, worst * 1.05, size[1])
    stairs = [points[0]]
    for before, after in pairwise(points):
        stairs += [(after[0], before[1]), after]
    said = f"{title}: {points[0][1]:.3g} ms at first, {points[-1][1]:.3g} ms after {end:.0f} {unit}"
    return _figure(said, x, y, _line(stairs, x, y, "curve"), size=size)


def _across(
    name: str, low: float, high: float, width: int = WIDTH, *, logarithmic: bool = False
) -> Axis:
    return Axis(name, low, high, LEFT, width - RIGHT, logarithmic)


def _up(
    name: str, low: float, high: float, height: int = HEIGHT, *, logarithmic: bool = False
) -> Axis:
    return Axis(name, low, high, height - BOTTOM, TOP, logarithmic)


def _figure(
    said: str, x: Axis, y: Axis, *parts: str, size: tuple[int, int] = (WIDTH, HEIGHT)
) -> str:
    drawn = "".join([*_grid(x, y), *parts])
    return (
        f'<svg viewBox="0 0 {size[0]} {size[1]}" role="img" aria-label="{escape(said)}">'
        f"<title>{escape(said)}</title>{drawn}</svg>"
    )


def _grid(x: Axis, y: Axis) -> Iterator[str]:
    for value in x.ticks():
        at = x.at(value)
        yield f'<path class="grid" d="M{at:.1f} {y.start}V{y.end}"/>'
        yield f'<text x="{at:.1f}" y="{y.start + 16:.1f}" text-anchor="middle">{value:g}</text>'
    for value in y.ticks():
        at = y.at(value)
        yield f'<path class="grid" d="M{x.start} {at:.1f}H{x.end}"/>'
        yield f'<text x="{x.start - 6}" y="{at + 4:.1f}" text-anchor="end">{value:g}</text>'
    middle = (x.start + x.end) / 2
    yield f'<text x="{middle}" y="{y.start + 34:.1f}" text-anchor="middle">{escape(x.name)}</text>'
    yield f'<text x="{x.start - 6}" y="{y.end - 4}" text-anchor="end">{escape(y.name)}</text>'


def _line(points: Sequence[Point], x: Axis, y: Axis, kind: str) -> str:
    path = "L".join(f"{x.at(one):.1f} {y.at(other):.1f}" for one, other in points)
    return f'<path class="{kind}" d="M{path}"/>'


def _dot(one: Mark, x: Axis, y: Axis) -> str:
    place = f'cx="{x.at(one.x):.1f}" cy="{y.at(one.y):.1f}" r="{one.size:.1f}"'
    return f'<circle class="{one.kind}" {place}><title>{escape(one.text)}</title></circle>'


def _round_step(step: float) -> float:
    """The least step of one, two or five times a power of ten that is no smaller."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= step * 0.999)
