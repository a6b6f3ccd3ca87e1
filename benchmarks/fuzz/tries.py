"""How the tool handles odd input and faults: models, traces, files, servers, frames, kills.

Without --minutes each surface gets as many tries as `SURFACES` says; with it, rounds of a twentieth
of them until the time is over, or Ctrl-C ends them. The same seed makes the same tries. A try ends
well if the tool does its work, or refuses with an error of its own. Failures are a traceback, exit
code 70, a command that takes more than 20 s (longer on a busy machine) or 4 GB, a process that
dies, an answer where ONNX Runtime refuses, and a wrong answer of a random graph. Findings are kept
in a folder, and printed at once.
"""

from __future__ import annotations

import platform
import random
import shutil
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from ansor_deploy.system.worker import Worker, WorkerFailure
from benchmarks.options import Listed, crowd, json_option, number, save

CHILD = "benchmarks.fuzz.command"
SECONDS = 20.0  # the longest that a command may take
PATIENCE = 40.0  # seconds until a try is killed: beyond SECONDS, to see how long it takes
MEGABYTES = 4096.0  # the most memory that a command may take
ROUNDS = 20  # rounds of one pass over all tries
BUG = 70  # exit code of an unexpected exception
DIFFER = 6  # exit code where outputs differ
# Targets of random graphs: this machine's newest vectors, and the generation before.
_TARGETS = ("host", "intel-cpu-avx2") if platform.machine() == "x86_64" else ("host",)
# Inputs that ONNX Runtime refuses, but a library may safely answer (docs/edge_values.md).
ANSWERED = ("by zero", "must be finite")
BAD = ("traceback", "exit 70", "hang", "memory", "dead", "unsafe", "broken", "wrong")
ENDS = ("done", "refused", "differs", *BAD)


@dataclass(frozen=True)
class Found:
    """One try. end: one of `ENDS`. folder: its files."""

    surface: str
    what: str
    end: str
    seconds: float
    megabytes: float
    said: str
    folder: Path | None = None


class Bench:
    """A worker for the tries, and a folder with intact files that the tool made."""

    def __init__(self, worker: Worker, samples: Path, scratch: Path) -> None:
        self.worker, self.samples, self._scratch = worker, samples, scratch

    def folder(self) -> Path:
        """A new, empty folder."""
        return Path(tempfile.mkdtemp(dir=self._scratch))

    def call(self, function: str, payload: dict[str, Any]) -> dict[str, Any]:
        """The result of a function of the child's side, or how the child ended."""
        patience = PATIENCE * crowd()
        try:
            found: dict[str, Any] = self.worker.call(
                f"benchmarks.fuzz.{function}", payload, patience
            )
        except WorkerFailure as failure:
            end = {"timeout": "hang", "raised": "traceback"}.get(failure.kind, "dead")
            return {"end": end, "said": failure.message, "seconds": patience}
        return found

    def command(
        self, surface: str, what: str, folder: Path, words: Sequence[str], by: str = "command"
    ) -> Found:
        """Run a command in a folder, and judge its end. by: the module whose `attempt` runs it."""
        payload = {"words": list(words), "folder": str(folder)}
        return judged(surface, what, self.call(f"{by}:attempt", payload), folder)


def judged(surface: str, what: str, ended: dict[str, Any], folder: Path | None) -> Found:
    """A try with its end as one of `ENDS`; that of a command is derived from its result."""
    code = ended.get("code", 0)
    holds = {
        "traceback": ended.get("traceback"),
        "exit 70": code == BUG,
        "hang": ended["seconds"] > SECONDS * crowd(),
        "memory": ended.get("megabytes", 0.0) > MEGABYTES,
        "differs": code == DIFFER,
        "refused": code != 0,
        "done": True,
    }
    end = ended.get("end") or next(name for name, is_so in holds.items() if is_so)
    took = ended["seconds"], ended.get("megabytes", 0.0)
    return Found(surface, what, end, *took, ended["said"], folder)


def models(bench: Bench, seed: int) -> Iterator[Found]:
    """Build a mutated model."""
    from benchmarks.fuzz.models import spoil

    folder = bench.folder()
    what = spoil(seed, folder / "net.onnx")
    words = ["build", "net.onnx", "--trials", "0", "--registry", "records.db"]
    yield bench.command("models", what, folder, words)


def operators(bench: Bench, seed: int) -> Iterator[Found]:
    """Build a model of one operator, and run it on every kind of input."""
    from benchmarks.fuzz.conformance_cases import meant
    from benchmarks.fuzz.operators import KINDS

    case = random.Random(0).sample(meant(), len(meant()))[seed % len(meant())]
    folder = bench.folder()
    bench.call("operators:write", {"case": case, "path": str(folder / "net.onnx")})
    words = ["build", "net.onnx", "--trials", "0", "--registry", "records.db"]
    built = bench.command("operators", case, folder, words)
    yield built
    if built.end == "done":
        for kind in KINDS:
            yield _called(bench, case, kind, folder)


def _called(bench: Bench, case: str, kind: str, folder: Path) -> Found:
    """Compare a library with ONNX Runtime on one kind of input."""
    answer = folder / "answer.npz"
    answer.unlink(missing_ok=True)
    words = {"case": case, "kind": kind, "path": str(folder / "net.onnx"), "answer": str(answer)}
    theirs = bench.call("operators:expected", words)
    refuses = theirs["said"]
    ours = bench.call("operators:differs", {"library": str(folder / "net.so"), **words})
    if refuses and ours["end"] in {"done", "differs"}:
        answered = any(one in refuses for one in ANSWERED)
        said = f"ONNX Runtime refuses: {refuses}"
        ours |= {"end": "differs" if answered else "unsafe", "said": said}
    elif ours["end"] == "refused" and not refuses:
        ours |= {"end": "differs"}
    return judged("operators", f"{case}, {kind}", ours, folder)


def layouts(bench: Bench, seed: int) -> Iterator[Found]:
    """Build a random layout graph, run it, and run it again with fences beside its tensors."""
    folder, target = bench.folder(), _TARGETS[seed % len(_TARGETS)]
    payload = {"seed": seed, "target": target, "folder": str(folder)}
    ended, kernel = bench.call("layouts:attempt", payload), folder / "kernel.txt"
    if ended["end"] in BAD and kernel.exists():
        ended["said"] += f"\n{kernel.read_text()}"
    yield judged("layouts", f"graph {seed} for {target}", ended, folder)


def quantised(bench: Bench, seed: int) -> Iterator[Found]:
    """Build a random quantised graph, and compare each segment with ONNX Runtime."""
    folder, target = bench.folder(), _TARGETS[seed % len(_TARGETS)]
    payload = {"seed": seed, "target": target, "folder": str(folder)}
    ended = bench.call("quantised:attempt", payload)
    yield judged("quantised", f"graph {seed} for {target}", ended, folder)


def traces(bench: Bench, seed: int) -> Iterator[Found]:
    """Change traces of a task, and compare those that still make a program with the plain one."""
    return _batch("traces", bench, seed, _TARGETS[seed // 2 % len(_TARGETS)])


def rules(bench: Bench, seed: int) -> Iterator[Found]:
    """Run random programs of a rule that check each access to their buffers."""
    return _batch("rules", bench, seed, _TARGETS[seed % len(_TARGETS)])


def _batch(surface: str, bench: Bench, seed: int, target: str) -> Iterator[Found]:
    folder = bench.folder()
    payload = {"seed": seed, "target": target, "folder": str(folder)}
    ended = bench.call(f"{surface}:attempt", payload)
    for one in ended.get("traces", [{**ended, "what": f"task {seed} for {target}"}]):
        kept = folder if one["end"] in BAD else None  # the traces of a batch share a folder
        yield judged(surface, f"{one['what']} (seed {seed})", one, kept)


def files(bench: Bench, seed: int) -> Iterator[Found]:
    """Give a hostile file to a command that reads it."""
    from benchmarks.fuzz.files import spoil

    folder = bench.folder()
    what, words = spoil(seed, bench.samples, folder)
    yield bench.command("files", what, folder, words)


def servers(bench: Bench, seed: int) -> Iterator[Found]:
    """Let a web server lie to a command; afterwards the registry must be intact."""
    from benchmarks.fuzz.servers import planned, prepare, serving

    plan, folder = planned(seed), bench.folder()
    for name in ("net.onnx", "own.toml", "records.db"):
        shutil.copy(bench.samples / name, folder / name)
    with serving(plan, bench.samples) as url:
        words = prepare(plan, url, folder)
        yield (told := bench.command("servers", str(plan), folder, words, "servers"))
    if (folder / "other.db").exists():
        words = ["registry", "verify", "--registry", "other.db"]
        whole = bench.command("servers", f"verify after {plan}", folder, words)
        yield replace(whole, end="broken") if whole.end == "refused" else whole
    if not plan.lies and told.end == "refused":
        yield replace(told, end="broken")


def frames(bench: Bench, seed: int) -> Iterator[Found]:
    """Let a board send invalid sessions; the host must handle them, or give the board up."""
    yield judged("frames", f"session {seed}", bench.call("frames:attempt", {"seed": seed}), None)


def faults(kind: str, bench: Bench, seed: int) -> Iterator[Found]:
    """Kill a build or fill its disk, then build again."""
    from benchmarks.fuzz import faults as of

    folder = bench.folder()
    for name in ("net.onnx", "own.toml"):
        shutil.copy(bench.samples / name, folder / name)
    ended = getattr(of, kind)(seed, folder)
    found = judged(kind, ended["what"], ended, folder)
    if found.end == "refused":  # the second build had enough space and time
        found = replace(found, end="broken")
    yield found


SURFACES: dict[str, tuple[int, Callable[[Bench, int], Iterator[Found]]]] = {
    "models": (500, models),
    "operators": (200, operators),
    "layouts": (2000, layouts),
    "quantised": (1000, quantised),
    "traces": (250, traces),
    "rules": (720, rules),
    "files": (100, files),
    "servers": (200, servers),
    "frames": (100, frames),
    "killed": (40, partial(faults, "killed")),
    "full": (20, partial(faults, "full")),
}


def run(bench: Bench, only: Sequence[str], seed: int, minutes: float) -> Iterator[Found]:
    """Tries of all surfaces, a twentieth of each a round; one pass, or until the time is over."""
    end = time.monotonic() + minutes * 60
    rounds = 0
    while rounds < ROUNDS if not minutes else time.monotonic() < end:
        for name in only:
            count, tries = SURFACES[name]
            share = max(1, count // 20)
            for k in range(rounds * share, (rounds + 1) * share):
                yield from tries(bench, seed * 100_000 + k if name != "operators" else seed + k)
        rounds += 1


def table(rows: Sequence[Found]) -> str:
    """How the tries of each surface ended, with the longest time and the most memory."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counted[row.surface][row.end] += 1
    lines = [f"{'surface':12}" + "".join(f"{end:>10}" for end in (*ENDS, "longest", "most MB"))]
    for name, ends in counted.items():
        mine = [row for row in rows if row.surface == name]
        worst = (max(row.seconds for row in mine), max(row.megabytes for row in mine))
        cells = [str(ends[end] or "") for end in ENDS]
        lines.append(
            f"{name:12}"
            + "".join(f"{cell:>10}" for cell in cells)
            + f"{worst[0]:9.1f}s{worst[1]:10.0f}"
        )
    return "\n".join(lines)


@click.command
@number("--minutes", 0.0, "Go on for so long.")
@number("--seed", 0, "Of all tries.")
@click.option("--only", type=Listed(click.Choice(list(SURFACES))), default=list(SURFACES))
@click.option("--findings", type=Path, help="Keep the files of what is found here.")
@json_option
def command(
    minutes: float, seed: int, only: list[str], findings: Path | None, file: Path | None
) -> None:
    """Run the tries, print findings at once, and the table at the end."""
    from benchmarks.fuzz.files import make

    rows: list[Found] = []
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fuzz-")))
        worker = Worker(CHILD, {"TVM_NUM_THREADS": "1"})
        stack.callback(worker.close)
        make(scratch / "samples")
        bench = Bench(worker, scratch / "samples", scratch)
        stack.enter_context(suppress(KeyboardInterrupt))  # tries so far count
        for found in run(bench, only, seed, minutes):
            rows.append(found)
            if found.end in {*BAD, "differs"}:
                print(f"{found.end}: {found.surface}: {found.what}\n    {found.said}", flush=True)
            _kept(found, findings, len(rows))
    print(table(rows))
    save([asdict(row) for row in rows], file)


def _kept(found: Found, findings: Path | None, number: int) -> None:
    """Copy the files of a finding, and remove those of other tries."""
    if found.folder is None or not found.folder.exists():
        return
    if findings and found.end in BAD:
        findings.mkdir(exist_ok=True)
        # There may be pipes, which Python's copying does not support.
        copy = ["cp", "-a", str(found.folder), str(findings / f"{found.surface}-{number}")]
        subprocess.run(copy, check=True)
    if found.surface != "operators":
        shutil.rmtree(found.folder, ignore_errors=True)
