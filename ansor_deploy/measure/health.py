"""Checks that a site keeps its speed: a reference kernel is timed before and after candidates.

The kernel is a matrix product under the default schedule. It uses every core, the vector units and
the caches, as candidates do, so that a falling clock or another busy process shows in its time.
"""

from collections.abc import Callable
from functools import cache

from ..codegen.kernels.signature import signature
from ..devices.site import Site
from ..errors import DeviceError
from ..runtime.tensors import Signature
from ..space.canonical_text import parse
from ..system.worker import WorkerFailure
from ..target import Target
from .builder import Builder, BuildJob, Built, Failure
from .site_runner import SiteRunner

# Other work, or a falling clock, counts if it changes the kernel's time by more than this share.
DRIFT = 0.15
# A board is unfit if the kernel takes more than this many times as long as at first,
UNFIT = 3.0
# and still does after these pauses, in seconds.
PAUSES = (1.0, 4.0, 15.0)

SIDE = 192
TEXT = f"""
@T.prim_func(s_tir=True)
def main(a: T.Buffer(({SIDE}, {SIDE}), "float32"), b: T.Buffer(({SIDE}, {SIDE}), "float32"), c: T.Buffer(({SIDE}, {SIDE}), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for i, j, k in T.grid({SIDE}, {SIDE}, {SIDE}):
        with T.sblock("b0"):
            u, v, w = T.axis.remap("SSR", [i, j, k])
            T.reads(a[u, w], b[w, v])
            T.writes(c[u, v])
            with T.init():
                c[u, v] = T.float32(0)
            c[u, v] = c[u, v] + a[u, w] * b[w, v]
"""  # noqa: E501 - a signature of the script stands on one line


@cache
def kernel_signature() -> Signature:
    """The signature of the reference kernel."""
    return signature(parse(TEXT))


def drift(before: float, after: float) -> float:
    """The share by which the slower of two times of the kernel exceeds the other."""
    return max(before, after) / min(before, after) - 1


class Unfit(Exception):  # noqa: N818 - the term
    """A site does not run the reference kernel, or runs it far slower than before."""


class Health:
    """Times the reference kernel on the sites of one target."""

    def __init__(self, builder: Builder, target: Target) -> None:
        self._builder, self._target = builder, target
        self._first: dict[str, float] = {}  # seconds, of each site

    def start(self) -> None:
        """Build the kernel in the background."""
        self._kernel = self._builder.submit(BuildJob(TEXT, "default"))

    def pulse(self, runner: SiteRunner, pause: Callable[[float], None]) -> float:
        """Seconds that the kernel takes on a site now.

        Unfit where it does not run, or where a board has become, and stays, far slower than it was
        at first and than its user accepts. This machine is never too slow: its user knows what else
        runs here. pause: waits for a number of seconds. DeviceError where the kernel cannot be
        built.
        """
        kernel = self._kernel.result
        if isinstance(kernel, Failure):
            raise DeviceError(
                f"the reference kernel cannot be built for {self._target.name}: {kernel.message}",
                "run `ansor-deploy doctor`",
            )
        seconds = self._time(runner, kernel)
        for wait in PAUSES:
            if self._times_as_long(runner.site, seconds) <= UNFIT:
                return seconds
            pause(wait)
            seconds = self._time(runner, kernel)
        if (times := self._times_as_long(runner.site, seconds)) > UNFIT:
            raise Unfit(f"the reference kernel takes {times:.1f} times as long as at first")
        return seconds

    def _time(self, runner: SiteRunner, kernel: Built) -> float:
        try:
            seconds = runner.pulse(kernel, kernel_signature())
        except WorkerFailure as failure:
            raise Unfit(failure.message) from failure
        self._first.setdefault(runner.site.name, seconds)
        return seconds

    def _times_as_long(self, site: Site, seconds: float) -> float:
        """The ratio to the first time, or to the time that a board's user accepts; 1 here."""
        return seconds / max(self._first[site.name], site.pace) if site.remote else 1.0
