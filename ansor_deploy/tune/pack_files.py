"""A measurement pack: candidates as files, for a target that this machine cannot reach.

    pack.json       the tasks to measure, and each candidate's schedule
    candidates/     the candidates' code
    expected/       the outputs that they are checked against, computed on this machine
    code/           modules that run them: some of ours, and for a processor TVM's runtime
    measure.py      `python3 measure.py` writes results.json

`measure/offline.py` runs on the other machine, and `sources/pack.py` takes the results in.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..codegen.kernels.signature import signature
from ..devices.board_bundle import board_files, is_like_here, own_files
from ..devices.machine import this_machine
from ..devices.site import LocalSite
from ..devices.wheels import fetch_wheels, wheels_folder
from ..errors import UsageError
from ..measure.builder import Builder, Building, BuildJob, Failure
from ..measure.libraries import Libraries
from ..measure.memory import room_for_copies
from ..measure.offline import PACK, RESULTS
from ..measure.outcome import Outcome
from ..measure.site_runner import SiteRunner, assumed_seconds
from ..registry.firewall import target_fields
from ..system.atomic_file import write_whole
from ..system.cluster import open_farm
from ..system.digest import canonical_json
from ..system.host import architecture
from ..system.interrupt import check
from ..system.scratch import Scratch
from .result import Packed
from .search import open_search
from .search.context import SearchContext, open_context

if TYPE_CHECKING:
    from ..model.tasks import Task
    from ..target import Target
    from .plan import PlanRow
    from .workspace import Workspace

VERSION = 1
PER_TASK = 16  # most candidates of a task in a pack: the next pack can learn from the results
_SCRIPT = "measure.py"
_FOLDERS = ("candidates", "expected", "code")
_PYTHON = "3.11"  # version on machines of another architecture: that of Debian 12
_MEASURE = f'''"""Measure the candidates of this folder on this machine: python3 {_SCRIPT}

It needs Python 3.10 or newer and NumPy, and for a GPU NVIDIA's driver. It writes {RESULTS} beside
it, and goes on where it was interrupted.
"""

import sys
from pathlib import Path

if sys.version_info < (3, 10):
    sys.exit("this needs Python 3.10 or newer")
FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER / "code"))

from ansor_deploy.measure.offline import main  # noqa: E402

if __name__ == "__main__":
    main(FOLDER)
'''


def check_folder(folder: Path) -> None:
    """UsageError where a folder has contents that are no pack, or is a file."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is no folder", "name a new folder for the pack")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / PACK).is_file():
        raise UsageError(f"{folder} is not empty, and holds no pack", "name a new folder")


def write_pack(rows: Sequence[PlanRow], work: Workspace, folder: Path) -> Packed:
    """Write the next candidates of these rows' tasks, in place of the previous pack.

    A candidate that cannot be built becomes a measurement at once and is left out.
    """
    if not rows:
        return Packed(folder, 0, 0)
    work.report.stage("pack", str(folder))
    _clear(folder)
    with ExitStack() as stack:
        pack = _Pack(work, folder, stack)
        proposed = [(row, pack.propose(row, len(rows))) for row in rows]
        begun = [(row, traces, pack.build(row.task, traces)) for row, traces in proposed if traces]
        tasks = {}
        for done, (row, traces, building) in enumerate(begun, 1):
            check()
            if entry := pack.entry(row, traces, building, f"{done}"):
                tasks[row.task.key.workload] = entry
            work.report.step("tasks", done, len(begun))
    if tasks:
        _write(folder, _header(work) | {"tasks": tasks}, work.request.target)
    return Packed(folder, len(tasks), sum(len(one["candidates"]) for one in tasks.values()))


class _Pack:
    """Makes the entries of a pack, while the stack is open."""

    def __init__(self, work: Workspace, folder: Path, stack: ExitStack) -> None:
        self._work, self._folder = work, folder
        request, here = work.request, this_machine()
        scratch = Scratch()
        stack.callback(scratch.close)
        warn = work.report.warn
        farm = stack.enter_context(open_farm(request.farm, warn)) if request.farm else None
        self._builder = Builder(request.target, scratch.path, farm)
        self._here = Builder(here, scratch.path)
        site = LocalSite(here.cores)
        libraries = Libraries(self._here)
        oracle = lambda task, how: libraries.reference(task, how).result  # noqa: E731
        self._references = SiteRunner(site, here, request.seed, oracle)
        for part in (self._builder, self._here, site):
            stack.callback(part.close)
        self._builder.start()
        self._context: SearchContext = open_context(
            work.registry, request.target, work.rules, request.seed, work.report.warn
        )

    def propose(self, row: PlanRow, rows: int) -> list[str]:
        """Traces of candidates: the best so far or the default, and then the search's proposals."""
        request, task = self._work.request, row.task
        limit = request.budget.trials
        count = min(row.trials, PER_TASK if limit is None else max(1, limit // rows))
        known = list(self._work.registry.measurements(task.key.target, task.key))
        search = open_search(request.search, task, known, self._context)
        standard = row.record.trace if row.record else self._work.default_trace(task)
        tried = {one.trace for one in known}
        new = [trace for trace in search.propose(count) if trace not in {*tried, standard}]
        if not new and standard in tried:
            self._work.ledger.add_ends({task.key: "exhausted"})
            return []
        return [standard, *new][: count + 1]

    def build(self, task: Task, traces: Sequence[str]) -> list[Building]:
        """Start to build candidates."""
        text = task.workload.text
        return [self._builder.submit(BuildJob(text, "trace", trace)) for trace in traces]

    def entry(
        self, row: PlanRow, traces: Sequence[str], building: Sequence[Building], name: str
    ) -> dict[str, Any]:
        """Write a task's files. Returns its entry of the pack; {} where nothing could be built."""
        task = row.task
        built: list[tuple[str, dict[str, Any]]] = []
        failed: list[Outcome] = []
        for trace, one in zip(traces, building, strict=True):
            if isinstance(made := one.result, Failure):
                failed.append(Outcome(trace, (), made.error, made.message))
                continue
            path = f"candidates/{name}-{len(built)}.so"
            shutil.move(made.path, self._folder / path)
            built.append((trace, {"path": path, "steps": list(made.steps)}))
        self._add_failures(task, failed)
        if not built:
            return {}
        target = self._work.request.target
        oracle, expected = self._references.expected(task)
        write_whole(self._folder / f"expected/{name}", expected, durable=False)
        room = room_for_copies(task, target)
        payload = {"signature": signature(task.mod).to_json(), "room": room}
        return {
            "name": task.name,
            "oracle": oracle,
            "seconds": assumed_seconds(task, target),
            "standards": [0] if built[0][0] == traces[0] else [],
            "payload": {**payload, "expected": f"expected/{name}"},
            "candidates": [one for _, one in built],
            "traces": [trace for trace, _ in built],
        }

    def _add_failures(self, task: Task, failed: Sequence[Outcome]) -> None:
        ledger, search = self._work.ledger, self._work.request.search
        features = lambda one: self._context.features(task, one.trace)  # noqa: E731
        ledger.add(task.key, failed, lambda _: ledger.provenance(search, ""), features)


def _header(work: Workspace) -> dict[str, Any]:
    target = work.request.target
    like_here = architecture(target.triple) == architecture()
    python = f"{sys.version_info[0]}.{sys.version_info[1]}" if like_here else _PYTHON
    return {
        "version": VERSION,
        "target": target_fields(target.to_json()),
        "gpu": asdict(target.gpu) if target.gpu else None,
        "arch": architecture(target.triple),
        "cores": target.cores,
        "python": "" if target.gpu else python,
        "seed": work.request.seed,
    }


def _clear(folder: Path) -> None:
    """Remove the existing pack, its description first, so that a partial one is never used."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (PACK, RESULTS, _SCRIPT):
        (folder / name).unlink(missing_ok=True)
    for name in _FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()


def _write(folder: Path, pack: dict[str, Any], target: Target) -> None:
    """Write the files that all packs of a target share, and then the description."""
    files = _of_processor(pack["arch"], pack["python"]) if target.gpu is None else own_files()
    for name, content in files.items():
        write_whole(folder / "code" / name, content, durable=False)
    write_whole(folder / _SCRIPT, _MEASURE.encode(), durable=False)
    write_whole(folder / PACK, canonical_json(pack).encode())


def _of_processor(arch: str, python: str) -> dict[str, bytes]:
    if not is_like_here(arch, python):
        fetch_wheels(arch, python, wheels_folder())
    return board_files("the pack's machine", arch, python)
