"""A Dask cluster, as a client for jobs or as an executor of functions.

The cluster's workers need the same ansor-deploy and TVM as this machine. Dask unpickles Python
objects, so whoever can reach the scheduler can run code on these machines.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, InvalidStateError
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from ..errors import AnsorError, DeviceError, MachineError
from .environment import version
from .machine_fault import fault_of

CONNECT_SECONDS = 15  # how long the scheduler may take to answer
# Packages whose versions must be equal on all machines.
_PACKAGES = ("ansor-deploy", "apache-tvm", "apache-tvm-ffi")


@contextmanager
def open_farm(address: str, warn: Callable[[str], None]) -> Iterator[Executor]:
    """The executor of a cluster; raises as `connected` does.

    warn: called with a sentence for each worker whose machine fails, which is left out then.
    """
    # Not pure: Dask must not reuse a failed build's result where the same program is built again.
    with connected(address) as client, client.get_executor(pure=False) as executor:
        yield _Workers(executor, list(client.nthreads()), warn)


class _Workers(Executor):
    """Dask's executor, without the workers whose machines have failed.

    fit: the addresses of all workers.
    """

    def __init__(self, executor: Any, fit: list[str], warn: Callable[[str], None]) -> None:
        self._executor, self._fit, self._warn = executor, fit, warn
        self._all_fit = True

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:  # type: ignore[override]
        """As Dask's; MachineError, which names the worker, where the last machine fails."""
        result: Future[Any] = Future()
        self._begin(result, partial(_called, function, args))
        return result

    def _begin(self, result: Future[Any], call: Callable[[], Any]) -> None:
        only = {} if self._all_fit else {"workers": self._fit}  # all: those that join later, too
        begun = self._executor.submit(call, **only)
        result.add_done_callback(lambda one: begun.cancel() if one.cancelled() else None)
        begun.add_done_callback(partial(self._pass_on, result, call))

    def _pass_on(self, result: Future[Any], call: Callable[[], Any], begun: Future[Any]) -> None:
        with suppress(InvalidStateError):  # it was cancelled, and nobody waits for it
            if begun.cancelled():
                result.cancel()
            elif error := begun.exception():
                result.set_exception(error)
            elif (fault := begun.result().get("fault")) and self._goes_on_without(**fault):
                self._begin(result, call)
            elif fault:
                result.set_exception(MachineError(fault["text"], fault["hint"]))
            else:
                result.set_result(begun.result()["answer"])

    def _goes_on_without(self, worker: str, text: str, hint: str) -> bool:
        """Leave out a worker whose machine has failed, unless it is the last one."""
        others = [one for one in self._fit if one != worker]
        if not others:
            return False
        if worker in self._fit:
            self._warn(f"the farm goes on without {text} ({hint})")
        self._fit, self._all_fit = others, False
        return True


def _called(function: Callable[..., Any], args: Sequence[Any]) -> dict[str, Any]:
    """On a worker: the "answer" of a function, or the "fault" of this machine."""
    from distributed import get_worker

    try:
        return {"answer": function(*args)}
    except Exception as error:
        if (fault := fault_of(error)) is None:
            raise
        worker = get_worker()
        text, hint = f"{worker.name}: {fault.message}", f"on {worker.name}: {fault.hint}"
        return {"fault": {"worker": worker.address, "text": text, "hint": hint}}


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
