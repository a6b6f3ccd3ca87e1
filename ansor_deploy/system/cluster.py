"""A Dask cluster, as a client that has jobs done there, or as an executor of functions.

The cluster's workers need the same ansor-deploy and TVM as this machine. Dask passes Python
objects, so a scheduler that others can reach must be one that they are trusted with.
"""

import logging
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from ..errors import AnsorError, DeviceError
from .environment import version

CONNECT_SECONDS = 15
_PACKAGES = ("ansor-deploy", "apache-tvm", "apache-tvm-ffi")


@contextmanager
def open_farm(address: str) -> Iterator[Executor]:
    """The executor of a cluster; raises as `connected` does."""
    # Not pure: the same program may be built twice, and the second may not fail as the first.
    with connected(address) as client, client.get_executor(pure=False) as executor:
        yield executor


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Dask's client of a cluster; its scheduler listens at the address (tcp://host:8786).

    DeviceError where it does not answer, has no workers, or these have other versions.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise AnsorError("a farm needs Dask", "run: pip install 'ansor-deploy[farm]'") from error
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # what matters is raised
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
    """Versions of the packages that must be the same on all machines; runs on each worker."""
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
