"""Tune models for targets on a farm: a job for each pair, one table, and one registry."""

from __future__ import annotations

import secrets
import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import AnsorError, DeviceError, UsageError
from ..model.onnx.file import load
from ..project import Project
from ..registry.bundle import BundleRefused
from ..registry.exchange import contents, import_bytes
from ..request import Request
from ..system.cluster import connected
from .job import Job, failed
from .table import Row

if TYPE_CHECKING:
    from ..views import Report

PATIENCE = 120.0  # seconds that jobs wait for a worker of their target, which may be starting again
_GLANCE_SECONDS = 0.2  # seconds between two looks at the jobs' messages
_LOOK_SECONDS = 5.0  # seconds between two looks at which machines are offered
_TRIES = 3  # tries of a job whose board or machine fails; Dask counts those whose worker is lost


def tune_on_farm(models: Sequence[Path], requests: Sequence[Request], report: Report) -> list[Row]:
    """Tune each model for the target of each request; return the rows of all jobs.

    All requests have the same farm, registry and rules. What a job finds is in the registry a
    moment later. Where a worker or this process ends early, the measurements stay in the registry
    of the machine that made them.

    Raises:
        UsageError, ModelError, DeviceError: before anything was sent.
    """
    _check_trust()
    farm = requests[0].farm
    report.stage("send", f"{len(models) * len(requests)} jobs to {farm}")
    files = [_files(model, requests[0].rules) for model in models]
    with (
        connected(farm) as client,
        _still_there(client, farm),
        _inbox(client) as inbox,
        _offers(client, inbox.name, requests),
    ):
        run = _Run(client, inbox, report, models, requests)
        try:
            run.submit(files)
            run.watch()
        finally:
            run.call_off()
    return run.rows


class _Run:
    """The jobs of a command, and their states."""

    def __init__(
        self,
        client: Any,
        inbox: Any,
        report: Report,
        models: Sequence[Path],
        requests: Sequence[Request],
    ) -> None:
        self._client, self._inbox, self._report = client, inbox, report
        self._models = models
        self._jobs = [(request, number) for request in requests for number in range(len(models))]
        self.rows = [Row(str(models[k]), request.target.name) for request, k in self._jobs]
        self._futures: dict[int, Any] = {}
        self._sent: list[Any] = []  # the files of each model
        self._known: dict[str, bytes] = {}  # of each target, by its fingerprint
        self._failed_on: list[list[str]] = [[] for _ in self._jobs]  # workers that failed each job
        self._only: dict[int, list[str]] = {}  # of a job that failed: the workers that may have it
        self._serving: dict[str, list[str]] = {}  # the workers of a target, by its name
        self._served: dict[str, float] = {}  # when a target last had a worker, by its name
        self._looked = 0.0

    def submit(self, files: Sequence[Mapping[str, bytes]]) -> None:
        """Queue all jobs. files: those of each model.

        DeviceError where no worker can do one of the jobs.
        """
        self._look()
        for row in self.rows:
            if row.target not in self._served:
                raise _nobody(row.target)
        self._known = {request.target.fingerprint: _known(request) for request, _ in self._jobs}
        with _any_size():
            # Sending files is a Dask task: each model is stored once, and sent again if it is lost.
            self._sent = [self._client.submit(dict, one, pure=False) for one in files]
        for number in range(len(self._jobs)):
            self._queue(number)

    def _queue(self, number: int) -> None:
        """Queue a job, for workers that have not failed it; for all where there is no other.

        Dask is asked for no preference: an idle worker would steal the job from the others.
        """
        from .worker import carry_out, resource

        request, k = self._jobs[number]
        job = _job(number, self._models[k], request, k, self._known[request.target.fingerprint])
        failed_on = self._failed_on[number]
        serving = self._serving[request.target.name]
        others = [one for one in serving if one not in failed_on] if failed_on else []
        self._only[number] = others
        with _any_size():
            self._futures[number] = self._client.submit(
                carry_out,
                job,
                self._sent[k],
                self._inbox.name,
                pure=False,
                resources={resource(request.target): 1},
                workers=others or None,
            )

    def watch(self) -> None:
        """Follow the jobs until all have ended, with success or not."""
        while self._futures:
            ended = [number for number, future in self._futures.items() if future.done()]
            self._read()  # messages sent before the end have arrived by now
            for number in ended:
                future = self._futures.pop(number)
                if not self._is_tried_again(number, _error(future)):
                    self._end(number, _answer(future))
                future.release()  # or Dask repeats the job if its worker is lost later
            self._report.jobs(self.rows)
            if self._futures:
                self._give_up_unserved()
                time.sleep(_GLANCE_SECONDS)

    def call_off(self) -> None:
        """End the jobs that still run, and take in what has arrived from them."""
        if self._client.status == "running":
            self._client.cancel(list(self._futures.values()), force=True)
            self._read()

    def _read(self) -> None:
        for message in self._inbox.get(batch=True):
            self._heed(message.pop("job"), **message)

    def _heed(self, number: int, *, warning: str = "", news: bytes = b"", **fields: Any) -> None:
        if number not in self._futures:  # it has ended, and was repeated before Dask forgot it
            return
        row = self.rows[number]
        if warning:
            self._report.warn(f"{row.name}: {warning}")
        if fields.get("state") == "begin":
            fields |= {"begun": row.begun + 1, "device": ""}
            if row.begun:
                self._report.warn(f"{row.name} is repeated by {fields['worker']}")
        if news:
            fields |= self._take_in(row, news)
        self.rows[number] = replace(row, **fields)

    def _take_in(self, row: Row, news: bytes) -> dict[str, Any]:
        """Take in a bundle, all or nothing; return the fields of the row that this changes."""
        registry, name = self._jobs[0][0].registry, f"{row.name}, from {row.worker}"
        try:
            return {"records": row.records + import_bytes(registry, news, name).records}
        except BundleRefused as error:
            return failed(error)

    def _is_tried_again(self, number: int, error: BaseException | None) -> bool:
        """Queue a job again if its board or its worker's machine has failed; not without end."""
        failed_on = self._failed_on[number]
        if not isinstance(error, DeviceError) or len(failed_on) == _TRIES - 1:
            return False
        failed_on.append(self.rows[number].worker)
        self._report.warn(f"{self.rows[number].name}: {error.message}; it is tried again")
        self._queue(number)
        return True

    def _end(self, number: int, answer: Mapping[str, Any]) -> None:
        row = self.rows[number]
        if "error" in answer:
            row = replace(row, **answer)
        else:
            row = replace(row, tuned=answer, latency_ms=answer["latency_ms"])
        if row.error:
            self._report.warn(f"{row.name} failed: {row.error}")
        self.rows[number] = replace(row, state="failed" if row.error else "done")

    def _give_up_unserved(self) -> None:
        """End the jobs whose target has had no worker for too long."""
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._look()
        for number in list(self._futures):
            target = self.rows[number].target
            if time.monotonic() - self._served[target] > PATIENCE:
                self._client.cancel([self._futures.pop(number)], force=True)
                self._end(number, failed(_nobody(target)))

    def _look(self) -> None:
        """Note for which targets machines are offered now, and which workers are lost."""
        from .worker import offered, resource

        offers = dict(self._client.run(offered, on_error="ignore").values())
        self._looked = time.monotonic()
        for target in {request.target.name: request.target for request, _ in self._jobs}.values():
            wanted = resource(target)
            self._serving[target.name] = [n for n, offer in offers.items() if offer.get(wanted)]
            if self._serving[target.name]:
                self._served[target.name] = self._looked
        for number in list(self._futures):
            self._mind_lost(number, offers)

    def _mind_lost(self, number: int, workers: Collection[str]) -> None:
        """Note it if a job's worker is lost; queue it anew if all are that it is meant for."""
        row = self.rows[number]
        if row.worker and row.worker not in workers:
            self._report.warn(f"{row.name}: {row.worker} is lost; waiting for another worker")
            self.rows[number] = replace(row, state="waiting", worker="", device="")
        if (only := self._only[number]) and not set(only) & set(workers):
            self._client.cancel([self._futures[number]], force=True)
            self._queue(number)


@contextmanager
def _any_size() -> Iterator[None]:
    """Within it, Dask does not warn that weights are large."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@contextmanager
def _still_there(client: Any, farm: str) -> Iterator[None]:
    """DeviceError for errors that follow from the loss of the scheduler."""
    try:
        yield
    except Exception as error:
        if isinstance(error, AnsorError) or client.status == "running":
            raise
        hint = "start it again; the same command resumes"
        raise DeviceError(f"the farm {farm} went away: {error}", hint) from error


@contextmanager
def _inbox(client: Any) -> Iterator[Any]:
    """A queue for the jobs' messages, which is removed at the end."""
    from distributed import Queue

    inbox = Queue(f"ansor-deploy-{secrets.token_hex(8)}", client=client)
    try:
        yield inbox
    finally:
        inbox.close()


@contextmanager
def _offers(client: Any, name: str, requests: Sequence[Request]) -> Iterator[None]:
    """Within it, all workers, new ones too, offer their machines of these targets."""
    from .worker import Offers

    client.register_plugin(Offers(name, tuple(request.target for request in requests)))
    try:
        yield
    finally:
        if client.status == "running":
            client.unregister_worker_plugin(name)


def _files(model: Path, rules: Sequence[Path]) -> dict[str, bytes]:
    """The files of a model and of rules: contents by their paths in a job's folder.

    ModelError as from `load`.
    """
    files = {path.relative_to(model.parent): path for path in (model, *load(model).external)}
    found = {f"model/{name}": path.read_bytes() for name, path in files.items()}
    return found | {str(_place(k, rule)): rule.read_bytes() for k, rule in enumerate(rules)}


def _place(number: int, rule: Path) -> Path:
    """A rule's path in a job's folder. The number keeps rules of the same name apart."""
    return Path("rules", str(number), rule.name)


def _known(request: Request) -> bytes:
    """A bundle of what the user's registry knows of a target."""
    target = request.target.fingerprint
    return contents(request.registry, lambda _, on: on == target)[0].to_bytes()


def _job(number: int, model: Path, request: Request, k: int, known: bytes) -> Job:
    """The job for a worker. k: the number of its model in the command."""
    own = replace(
        request,
        objective=request.objective.of_model(k),
        rules=tuple(_place(at, rule) for at, rule in enumerate(request.rules)),
        farm="",
        finds_devices=False,
        layers=(),
    )
    return Job(number, f"model/{model.name}", own, known)


def _answer(future: Any) -> Mapping[str, Any]:
    """The answer of a job that has ended, or the failure that its end means."""
    if future.status == "finished":
        answer: Mapping[str, Any] = future.result()
        return answer
    error = _error(future)
    if isinstance(error, AnsorError):
        return failed(error)
    reason = f"{type(error).__name__}: {error}" if error else "the farm has dropped it"
    return failed(DeviceError(reason, "see the farm's logs; the same command resumes"))


def _error(future: Any) -> BaseException | None:
    """What a job has raised, if it has."""
    error: BaseException | None = future.exception() if future.status == "error" else None
    return error


def _check_trust() -> None:
    if Project.find().trust is not None:
        text = "this project trusts signed records only, and those of a farm are not signed"
        raise UsageError(text, "let the farm build candidates only: --no-device, or --device NAME")


def _nobody(target: str) -> DeviceError:
    return DeviceError(
        f"no worker of the farm reaches a machine of target {target}",
        "add a board on a worker's machine: ansor-deploy devices add USER@HOST; or measure here "
        "what the farm builds: --no-device, or --device NAME",
    )
