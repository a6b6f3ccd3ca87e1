"""Measures a pack: exported candidates, on a machine that the tuning machine cannot reach.

`tune/pack_files.py` writes `pack.json`, and `tune/sources/pack.py` reads `results.json`. Candidates
run as on a board, by `runner.py` in a child process that may crash, and each task's fastest run in
turns at the end. This needs only Python, NumPy and a GPU's driver on the machine.

Results are written task by task, so that an interrupted run can continue.
"""

import hashlib
import json
import math
import os
import platform
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import AnsorError
from ..system import fence
from ..system.worker import Worker, WorkerFailure

PACK, RESULTS = "pack.json", "results.json"
# A finalist of a task is slower than the best by this share at most.
_CLOSE = 0.1
# Most finalists of a task besides its standards.
_KEEP = 3
_LEAST_SECONDS, _MOST_SECONDS, _PATIENCE = 5.0, 600.0, 60.0  # as in `site_runner.py`
_HERE = __package__
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._:@-]+")

Found = dict[str, Any]  # an answer of `runner.run`


def main(folder: Path) -> None:
    """Measure a folder's pack and write its `results.json`; exit with 1 where that fails."""
    content = (folder / PACK).read_bytes()
    pack, digest = json.loads(content), hashlib.sha256(content).hexdigest()
    try:
        with _Bench(folder, pack) as bench:
            device = bench.device()
            sys.stdout.write(f"measuring on {device}\n")
            results = _begun(folder / RESULTS, {"pack": digest, "device": device, "tasks": {}})
            for at, (key, task) in enumerate(pack["tasks"].items(), 1):
                if key not in results["tasks"]:
                    results["tasks"][key] = bench.measure(task)
                    _write(folder / RESULTS, results)
                _say(f"{at}/{len(pack['tasks'])} {task['name']}", results["tasks"][key]["found"])
    except KeyboardInterrupt:
        sys.exit("interrupted: what is measured is kept, and the same command goes on from there")
    except AnsorError as error:
        sys.exit(f"error: {error}\n  hint: {error.hint}")
    sys.stdout.write(f"done: take {folder / RESULTS} back\n")


class _Bench:
    """A worker that runs candidates of one pack."""

    def __init__(self, folder: Path, pack: dict[str, Any]) -> None:
        _check_python(pack["python"])
        self._folder, self._pack = folder, pack
        gpu = pack["gpu"] is not None
        self._common = {"machine": "gpu" if gpu else "cpu", "seed": pack["seed"]}
        # A GPU's worker has no fence: it talks to the driver by files.
        cpu = {"TVM_NUM_THREADS": str(pack["cores"]), fence.VARIABLE: os.devnull}
        env = {} if gpu else cpu
        self._worker = Worker(f"{_HERE}.{'runner' if gpu else 'on_cpu'}", env)

    def __enter__(self) -> "_Bench":  # noqa: PYI034 - Self is newer than Python 3.10
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def device(self) -> str:
        """This machine's name for the results. AnsorError where it is not the target's."""
        wanted = self._pack["gpu"]
        if wanted is None:
            return _NOT_IN_A_NAME.sub("-", _processor(self._pack))[:100]
        try:
            found = self._worker.call(f"{_HERE}.on_gpu:gpu", {}, _LEAST_SECONDS * 12)
        except WorkerFailure as failure:
            hint = "run it on a machine with an NVIDIA GPU and its driver"
            raise AnsorError(f"no GPU can be used: {failure.message}", hint) from failure
        if (found["arch"], found["sms"]) != (wanted["arch"], wanted["sms"]):
            raise AnsorError(
                f"this GPU, {found['name']}, is {found['arch']} with {found['sms']} "
                f"multiprocessors, and the pack is for {wanted['arch']} with {wanted['sms']}",
                "export a pack for a target that has this GPU's figures",
            )
        return _NOT_IN_A_NAME.sub("-", f"{found['name']} driver {found['driver']}")[:100]

    def measure(self, task: dict[str, Any]) -> dict[str, Any]:
        """Measure each candidate alone, and then the standards and the fastest in turns."""
        candidates = [{**one, "path": self._at(one["path"])} for one in task["candidates"]]
        found: list[Found] = []
        for candidate in candidates:
            best = min(map(_latency, found), default=math.inf)
            known = best if math.isfinite(best) else None
            found.append(self._run("runner:run", {**candidate, "best": known}, task, best))
        finalists = _finalists(found, task["standards"])
        words = {"candidates": [candidates[at] for at in finalists]}
        slowest = max((_latency(found[at]) for at in finalists), default=0.0)
        turns = self._run("head_to_head:head_to_head", words, task, slowest) if finalists else []
        if isinstance(turns, dict):  # one of them failed, but it is not known which
            finalists, turns = [], []
        return {"found": found, "finalists": finalists, "turns": turns}

    def _run(self, what: str, words: dict[str, Any], task: dict[str, Any], best: float) -> Any:
        """The answer of a worker's function, from a fresh process if the first try fails.

        best: expected seconds of a run; infinite where they are not known.
        """
        payload = {**self._common, **task["payload"], **words}
        payload["expected"] = self._at(payload["expected"])
        expected = best if math.isfinite(best) else task["seconds"]
        timeout = min(max(_LEAST_SECONDS, _PATIENCE * expected), _MOST_SECONDS)
        timeout *= max(1, len(words.get("candidates", ())))
        answer = self._called(what, payload, timeout)
        if isinstance(answer, WorkerFailure):
            answer = self._called(what, payload, timeout)
        if isinstance(answer, WorkerFailure):
            return _failed(answer)
        if isinstance(answer, dict) and answer["error"] == "wrong-output":
            self._worker.kill()  # the candidate may have written anywhere in the process
        return answer

    def _called(self, what: str, payload: dict[str, Any], timeout: float) -> Any:
        try:
            return self._worker.call(f"{_HERE}.{what}", payload, timeout)
        except WorkerFailure as failure:
            self._worker.kill()
            return failure

    def _at(self, name: str) -> str:
        return str(self._folder / name)


def _failed(failure: WorkerFailure) -> Found:
    kind = "run" if failure.kind == "raised" else failure.kind
    return {"seconds": [], "error": kind, "message": failure.message, "errors": None}


def _finalists(found: list[Found], standards: list[int]) -> list[int]:
    """Positions of the candidates that run in turns: the standards first, then the fastest."""
    times = list(map(_latency, found))
    right = sorted(
        (at for at, time in enumerate(times) if math.isfinite(time)), key=times.__getitem__
    )
    close = [at for at in right if times[at] <= times[right[0]] * (1 + _CLOSE)]
    known = [at for at in standards if at in right]
    return list(dict.fromkeys([*known, *close[:_KEEP]]))


def _latency(found: Found) -> float:
    seconds = sorted(found["seconds"])
    return seconds[len(seconds) // 2] if seconds and not found["error"] else math.inf


def _check_python(wanted: str) -> None:
    have = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if wanted and wanted != have:
        hint = f"start it with that one: python{wanted} measure.py"
        raise AnsorError(f"this is Python {have}, and the pack is for {wanted}", hint)
    if find_spec("numpy") is None:
        raise AnsorError("NumPy is not installed here", "install it: pip install numpy")


def _processor(pack: dict[str, Any]) -> str:
    cores = len(os.sched_getaffinity(0))
    if platform.machine() != pack["arch"] or cores < pack["cores"]:
        raise AnsorError(
            f"this is a machine for {platform.machine()} with {cores} cores, and the pack is for "
            f"{pack['arch']} with {pack['cores']}",
            "run it on the target",
        )
    return platform.node()


def _begun(path: Path, empty: dict[str, Any]) -> dict[str, Any]:
    """The existing results if they are of this pack and this device; else empty ones."""
    if not path.exists():
        return empty
    before: dict[str, Any] = json.loads(path.read_bytes())
    same = all(before[name] == empty[name] for name in ("pack", "device"))
    return before if same else empty


def _write(path: Path, results: dict[str, Any]) -> None:
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(json.dumps(results), encoding="utf-8")
    unfinished.replace(path)


def _say(task: str, found: list[Found]) -> None:
    right = [one for one in found if not one["error"]]
    best = min(map(_latency, right), default=None)
    times = f", the best takes {best * 1e6:.1f} us" if best is not None else ""
    sys.stdout.write(f"{task}: {len(right)} of {len(found)} are right{times}\n")
    sys.stdout.flush()
