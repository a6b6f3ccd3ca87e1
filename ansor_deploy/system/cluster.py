"""A Dask cluster, as a client for jobs or as an executor of functions.

The cluster's workers need the same ansor-deploy and TVM as this machine. Dask unpickles Python
objects, so whoever can reach the scheduler can run code on these machines.
"""

import logging
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from ..errors import AnsorError, DeviceError
from .environment import version

CONNECT_SECONDS = 15  # how long the scheduler may take to answer
# Packages whose versions must be equal on all machines.
_PACKAGES = ("ansor-deploy", "apache-tvm", "apache-tvm-ffi")


@contextmanager
def open_farm(address: str) -> Iterator[Executor]:
    """The executor of a cluster; raises as `connected` does."""
    # Not pure: Dask must not reuse a failed build's result where the same program is built again.
    with connected(address) as client, client.get_executor(pure=False) as executor:
        yield executor


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Dask's client of a cluster whose scheduler listens at the address (tcp://host:8786).

    DeviceError where it does not answer, has no workers, or they have other versions.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise AnsorError("a farm needs Dask", "run: pip install 'ansor-deploy[farm]'") from error
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # failures are raised, too
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise DeviceError(
            f"the farm {address} does not answer: {error}",
            "start it: `dask scheduler`, and `dask worker ADDRESS` on each machine",
        ) from error
    with client:
        _check_versions(address, client.run(versions))
        yield client


def versions() -> dict[str, str]:
    """Versions of the packages that all machines must share; runs on each worker."""
    return {name: version(name) for name in _PACKAGES}


def _check_versions(address: str, workers: dict[str, dict[str, str]]) -> None:
    if not workers:
        raise DeviceError(
            f"the farm {address} has no workers", f"start some: dask worker {address}"
        )
    here = versions()
    for worker, there in workers.items():
        for name in _PACKAGES:
            if there[name] != here[name]:
                raise DeviceError(
                    f"{worker} of the farm has {name} {there[name] or 'not at all'}; this machine "
                    f"has {here[name]}",
                    f"install the same on both: pip install {name}=={here[name]}",
                )
