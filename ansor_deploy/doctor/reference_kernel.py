"""The last check of a device: it runs the reference kernel correctly, and at a steady speed."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from ..devices.board import BoardSite
from ..devices.connection import Connection
from ..devices.facts import look_at
from ..errors import AnsorError, DeviceError
from ..measure.builder import Builder, BuildJob, Built, Failure
from ..measure.health import DRIFT, TEXT, drift, kernel_signature
from ..measure.site_runner import SiteRunner
from ..system.worker import WorkerFailure
from ..target import Target
from .host import Check, judged

TIMES = 5  # runs of the kernel
PATIENCE_SECONDS = 10.0  # how long another host may keep using the device
_NAME = "reference kernel"


def check_kernel(name: str, target: Target, connect: Callable[[], Connection]) -> Iterator[Check]:
    """Run the kernel a few times on a device that has a runtime.

    The check is a warning where the times vary, or another host uses the device; FAIL where the
    kernel does not run.
    """
    holders: list[str] = []
    try:
        with closing(connect()) as connection:
            if not look_at(name, connection).runtimes:
                return
        times = kernel_times(name, target, connect, holders.append)
    except WorkerFailure as failure:
        remedy = f"is it a {target.name}? If so, suspect its memory, power supply or cooling"
        yield Check(_NAME, "FAIL", failure.message, remedy)
    except AnsorError as error:
        yield Check(_NAME, "warn" if holders else "FAIL", error.message, error.hint)
    else:
        yield check_times(times)


def kernel_times(
    name: str,
    target: Target,
    connect: Callable[[], Connection],
    waiting: Callable[[str], None] = lambda holder: None,
) -> list[float]:
    """Run the kernel several times on a device, check its results, and return the seconds.

    waiting: called with the name of another host, while that uses the device.

    Raises:
        WorkerFailure: the kernel fails.
        DeviceError: the device cannot be used.
    """
    with tempfile.TemporaryDirectory(prefix="ansor-deploy-") as folder:
        kernel = _built(target, Path(folder))
        site = BoardSite(name, connect, target.cores, waiting=waiting, patience=PATIENCE_SECONDS)
        with closing(site):
            site.start()
            runner = SiteRunner(site, target, 0, lambda *_: kernel)
            return [runner.pulse(kernel, kernel_signature()) for _ in range(TIMES)]


def check_times(times: Sequence[float]) -> Check:
    """Check that the device's speed is steady. times: of the kernel, in seconds."""
    found = f"{min(times) * 1e3:.3g} to {max(times) * 1e3:.3g} ms"
    remedy = "times measured now are not steady: check its clock governor, load and cooling"
    return judged(_NAME, drift(min(times), max(times)) <= DRIFT, found, remedy, "warn")


def _built(target: Target, folder: Path) -> Built:
    with closing(Builder(target, folder)) as builder:
        (kernel,) = builder.build([BuildJob(TEXT, "default")])
    if isinstance(kernel, Failure):
        hint = "run: ansor-deploy doctor"
        raise DeviceError(f"it cannot be built for {target.name}: {kernel.message}", hint)
    return kernel
