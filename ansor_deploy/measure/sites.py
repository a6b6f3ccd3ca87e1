"""The sites of a measurer: free ones, lost ones that are looked for, and given up ones."""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue

from ..devices.site import Site
from ..errors import DeviceError, DeviceLost, MachineError
from ..system.machine_fault import RESUMES
from .health import Unfit
from .site_runner import SiteRunner

# Seconds before each attempt to find a lost board again; a reboot takes a minute.
RETURN_SECONDS = (0, 2, 5, 10, 20, 30, 60)
LOOK_SECONDS = 60.0  # between two checks for strain on a site, such as heat
LOSSES = 3  # a board that is lost this often without a measured chunk in between is given up


class Stopped(Exception):  # noqa: N818 - it was asked for
    """A batch was stopped, as asked, before its end."""


class Sites:
    """Lends each site to one thread at a time.

    runner: makes the runner of a site; a site that was lost gets a new one. warn: called with
    warnings for the user. unfit: called with a site's name and the reason why nothing runs there
    any more, if it fails the reference kernel or is lost again and again.
    """

    def __init__(
        self,
        sites: Sequence[Site],
        runner: Callable[[Site], SiteRunner],
        warn: Callable[[str], None],
        unfit: Callable[[str, str], None],
    ) -> None:
        self._count, self._runner = len(sites), runner
        self._warn, self._unfit = warn, unfit
        self._free: SimpleQueue[SiteRunner] = SimpleQueue()
        for site in sites:
            self._free.put(runner(site))
        self._gone: list[str] = []  # the reason for each site that was given up
        self._losses: Counter[str] = Counter()  # losses in a row, by site
        self._looked: dict[str, float] = {}  # last check for strain, by site, monotonic clock
        self._strains: set[tuple[str, tuple[str, ...]]] = set()  # strains that were warned about

    @contextmanager
    def lend(self, stopped: threading.Event) -> Iterator[SiteRunner]:
        """Lend a free site. If it is lost meanwhile, it is looked for again, and then given up.

        stopped: once set, it ends the wait for a site and the search for a lost one. Stopped where
        it is set; DeviceLost where no site is left; MachineError where this machine is unfit.
        """
        runner = self._next_free(stopped)
        try:
            yield runner
        except DeviceLost as lost:
            self._find_again(runner.site, lost, stopped)
        except Unfit as reason:
            if not runner.site.remote:
                raise MachineError(
                    f"this machine does not run the reference kernel: {reason}",
                    f"it may be too busy: end other programs; {RESUMES}",
                ) from reason
            self._quarantine(runner.site, str(reason))
        except BaseException:
            self._free.put(runner)
            raise
        else:
            self._free.put(runner)

    def count_success(self, site: Site) -> None:
        """Note that a site has measured something, so that its earlier losses no longer count."""
        self._losses.pop(site.name, None)
        if time.monotonic() >= self._looked.get(site.name, -math.inf) + LOOK_SECONDS:
            self._look_at(site)
            self._looked[site.name] = time.monotonic()

    def _look_at(self, site: Site) -> None:
        """Warn if a site is under strain while it measures; once for the same reasons."""
        strain = site.strain()
        said = (site.name, strain.reasons)
        if strain.reasons and said not in self._strains:
            self._strains.add(said)
            self._warn(strain.text(site.name))

    def _next_free(self, stopped: threading.Event) -> SiteRunner:
        while len(self._gone) < self._count:
            if stopped.is_set():
                raise Stopped
            with suppress(Empty):
                return self._free.get(timeout=1)
        raise DeviceLost(
            f"no device is left to measure on: {'; '.join(self._gone)}",
            "see `ansor-deploy devices doctor NAME`; what was measured is kept, and the same "
            "command goes on from there",
        )

    def _find_again(self, site: Site, lost: DeviceLost, stopped: threading.Event) -> None:
        """Look for a lost site; a batch that is stopped leaves that to the next batch."""
        if not stopped.is_set():
            self._losses[site.name] += 1
            if self._losses[site.name] == LOSSES:
                why = f"lost {LOSSES} times in a row; the last time: {lost.message}"
                return self._quarantine(site, why)
            self._warn(f"{lost.message}; looking for it again")
            if failure := _not_found(site, stopped):
                return self._give_up(site, failure)
        return self._free.put(self._runner(site))

    def _quarantine(self, site: Site, reason: str) -> None:
        self._unfit(site.name, reason)
        until = f"it is in quarantine until `ansor-deploy devices doctor {site.name}` finds it well"
        self._give_up(site, f"{site.name}: {reason}; {until}")

    def _give_up(self, site: Site, reason: str) -> None:
        self._warn(f"{reason}; nothing is measured on {site.name} any more")
        self._gone.append(reason)


def _not_found(site: Site, stopped: threading.Event) -> str:
    """Why a lost site cannot be started again; "" if it was started, or the batch was stopped."""
    message = ""
    for seconds in RETURN_SECONDS:
        if stopped.wait(seconds):
            return ""
        try:
            site.start()
        except DeviceError as error:
            message = error.message
        else:
            return ""
    return message
