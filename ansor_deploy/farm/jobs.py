"""Models x targets on a farm: a job each, all in one table; what they find ends in one registry."""

from __future__ import annotations

import secrets
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
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

PATIENCE = 120.0  # seconds that a target's jobs wait for a worker, as for one that starts again
_GLANCE_SECONDS = 0.2
_LOOK_SECONDS = 5.0  # between two looks for who offers what
_TRIES = 3  # of a job of which the board or the process fails; a lost worker's are Dask's to count


def tune_on_farm(models: Sequence[Path], requests: Sequence[Request], report: Report) -> list[Row]:
    """Tune each model for the target of each request; what has become of each job.

    All requests have the same farm, registry and rules. What a job finds is in the registry a
    moment later; what it has measured when a worker or this process ends is kept where it was
    measured.

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
    """The jobs of a command, and what has become of them."""

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
        self._served: dict[str, float] = {}  # when a target last was, by its name
        self._looked = 0.0

    def submit(self, files: Sequence[Mapping[str, bytes]]) -> None:
        """Queue all jobs. files: of each model.

        DeviceError where nobody can do one.
        """
        from .worker import carry_out, resource

        self._look()
        for row in self.rows:
            if row.target not in self._served:
                raise _nobody(row.target)
        known = {request.target.fingerprint: _known(request) for request, _ in self._jobs}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of weights: that they are large
            # Tasks of their own: each model is there once, and is made again where it was lost.
            sent = [self._client.submit(dict, one, pure=False) for one in files]
            for number, (request, k) in enumerate(self._jobs):
                job = _job(number, self._models[k], request, k, known[request.target.fingerprint])
                self._futures[number] = self._client.submit(
                    carry_out,
                    job,
                    sent[k],
                    self._inbox.name,
                    pure=False,
                    resources={resource(request.target): 1},
                    retries=_TRIES - 1,
                )

    def watch(self) -> None:
        """Until all have ended, well or not."""
        while self._futures:
            ended = [number for number, future in self._futures.items() if future.done()]
            self._read()  # what they have sent before they ended is here by now
            for number in ended:
                self._end(number, _answer(self._futures.pop(number)))
            self._report.jobs(self.rows)
            if self._futures:
                self._give_up_unserved()
                time.sleep(_GLANCE_SECONDS)

    def call_off(self) -> None:
        """End the jobs that have not ended, and take in what is here of them."""
        if self._client.status == "running":
            self._client.cancel(list(self._futures.values()), force=True)
            self._read()

    def _read(self) -> None:
        for message in self._inbox.get(batch=True):
            self._heed(message.pop("job"), **message)

    def _heed(self, number: int, *, warning: str = "", news: bytes = b"", **fields: Any) -> None:
        row = self.rows[number]
        if warning:
            self._report.warn(f"{row.name}: {warning}")
        if fields.get("state") == "begin":
            fields |= {"begun": row.begun + 1, "device": ""}
            if row.begun:
                self._report.warn(f"{row.name} is done again, by {fields['worker']}")
        if news:
            fields |= self._take_in(row, news)
        self.rows[number] = replace(row, **fields)

    def _take_in(self, row: Row, news: bytes) -> dict[str, Any]:
        """Take in a bundle, all or nothing; the fields of the row that change by it."""
        registry, name = self._jobs[0][0].registry, f"{row.name}, from {row.worker}"
        try:
            return {"records": row.records + import_bytes(registry, news, name).records}
        except BundleRefused as error:
            return failed(error)

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
        """End the jobs for which there has been no worker for too long."""
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._look()
        for number in list(self._futures):
            target = self.rows[number].target
            if time.monotonic() - self._served[target] > PATIENCE:
                self._client.cancel([self._futures.pop(number)], force=True)
                self._end(number, failed(_nobody(target)))

    def _look(self) -> None:
        """See which targets' machines are offered now, and which workers are lost."""
        from .worker import offered, resource

        offers = dict(self._client.run(offered, on_error="ignore").values())
        self._looked = time.monotonic()
        for request, _ in self._jobs:
            if any(offer.get(resource(request.target)) for offer in offers.values()):
                self._served[request.target.name] = self._looked
        for number in self._futures:
            row = self.rows[number]
            if row.worker and row.worker not in offers:
                self._report.warn(f"{row.name}: {row.worker} is lost, another is waited for")
                self.rows[number] = replace(row, state="waiting", worker="", device="")


@contextmanager
def _still_there(client: Any, farm: str) -> Iterator[None]:
    """DeviceError for what goes wrong because the scheduler went away."""
    try:
        yield
    except Exception as error:
        if isinstance(error, AnsorError) or client.status == "running":
            raise
        hint = "start it again; the same command resumes"
        raise DeviceError(f"the farm {farm} went away: {error}", hint) from error


@contextmanager
def _inbox(client: Any) -> Iterator[Any]:
    """A queue for what jobs say, gone at the end."""
    from distributed import Queue

    inbox = Queue(f"ansor-deploy-{secrets.token_hex(8)}", client=client)
    try:
        yield inbox
    finally:
        inbox.close()


@contextmanager
def _offers(client: Any, name: str, requests: Sequence[Request]) -> Iterator[None]:
    """Meanwhile workers, also new ones, offer their machines of these targets."""
    from .worker import Offers

    client.register_plugin(Offers(name, tuple(request.target for request in requests)))
    try:
        yield
    finally:
        if client.status == "running":
            client.unregister_worker_plugin(name)


def _files(model: Path, rules: Sequence[Path]) -> dict[str, bytes]:
    """A model and the rules, contents by their paths in a job's folder. ModelError as of `load`."""
    files = {path.relative_to(model.parent): path for path in (model, *load(model).external)}
    found = {f"model/{name}": path.read_bytes() for name, path in files.items()}
    return found | {str(_place(k, rule)): rule.read_bytes() for k, rule in enumerate(rules)}


def _place(number: int, rule: Path) -> Path:
    """Where a rule lies in a job's folder: two may have one name."""
    return Path("rules", str(number), rule.name)


def _known(request: Request) -> bytes:
    """A bundle of what the user knows of a target."""
    target = request.target.fingerprint
    return contents(request.registry, lambda _, on: on == target)[0].to_bytes()


def _job(number: int, model: Path, request: Request, k: int, known: bytes) -> Job:
    """What a worker is sent. k: which of the command's models it is."""
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
    """What a job that has ended says, or what its end means."""
    if future.status == "finished":
        answer: Mapping[str, Any] = future.result()
        return answer
    error = future.exception() if future.status == "error" else None
    if isinstance(error, AnsorError):
        return failed(error)
    reason = f"{type(error).__name__}: {error}" if error else "the farm has dropped it"
    return failed(DeviceError(reason, "see the farm's logs; the same command resumes"))


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
