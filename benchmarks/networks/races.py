"""How often a race of two libraries is wrong, and how large a difference it finds.

Each library races against itself, as a build races the tuned library against the untuned one: a
verdict that one is faster is wrong. With --slower, the times of one side are made longer by so many
percent: then every verdict but "faster" has missed that. FIRST.so+SECOND.so are two builds of one
model with equal schedules. With --busy, so many processes that never wait run beside the races.
Each race adds a line of JSON to --json; races that the file holds already are counted, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins

from ansor_deploy.runtime.model import load
from ansor_deploy.ship.manifest import UNTUNED
from ansor_deploy.ship.race.fresh import FreshTurns, fresh_turns, library_side
from ansor_deploy.ship.race.race import ALIKE, LOOKS, Turn, race
from ansor_deploy.ship.race.untuned import MOST_SECONDS
from benchmarks.options import Listed, number

BUSY = "while True: sum(range(100_000))"


@click.command
@click.argument("libraries", nargs=-1, required=True, metavar="FILE.so[+FILE.so]...")
@number("--races", 20, "Of each library.")
@number("--busy", 0, "Processes beside them.")
@click.option("--slower", type=Listed(float), default=[0.0], help="Percents, of one of the two.")
@number("--threads", 0)
@click.option("--json", "file", type=Path, help="A line a race; those that it has count along.")
def command(
    libraries: Sequence[str],
    races: int,
    busy: int,
    slower: list[float],
    threads: int,
    file: Path | None,
) -> None:
    """Race, and print a table."""
    known = read(file) if file else []
    with loaded(busy), ExitStack() as stack:
        cases = [
            (pair, stack.enter_context(opened(pair, threads)), percent)
            for pair in libraries
            for percent in slower
        ]
        for pair, turns, percent in cases * races:
            known.append({"case": pair, "busy": busy, **entry(turns, percent)})
            if file:
                with file.open("a") as stream:
                    stream.write(json.dumps(known[-1]) + "\n")
    print("\n".join(table(known)))


def entry(turns: FreshTurns, percent: float) -> dict[str, Any]:
    """One race and its result; like a build, it races until it is sure, or for some seconds."""
    began = time.monotonic()
    take = partial(slowed, turns.take, 1 + percent / 100)
    found = race(UNTUNED, take, began + MOST_SECONDS, LOOKS, LOOKS[0])
    return {"percent": percent, "seconds": time.monotonic() - began, **to_builtins(found)}


@contextmanager
def opened(pair: str, threads: int) -> Iterator[FreshTurns]:
    """The turns of two libraries. All races of a pair share a process that starts the others."""
    first, *others = [load(Path(part), threads) for part in pair.split("+")]
    sides = library_side(first), library_side(others[0] if others else first)
    with fresh_turns(*sides, range(len(first.interfaces)), 0, time.monotonic()) as turns:
        yield turns


def slowed(take: Callable[[bool], Sequence[Turn]], factor: float, ours_first: bool) -> list[Turn]:
    """Turns in which the times of the second side are multiplied by a factor."""
    return [replace(turn, theirs=turn.theirs * factor) for turn in take(ours_first)]


@contextmanager
def loaded(count: int) -> Iterator[None]:
    """Keep so many processes busy within the block."""
    started = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


def read(path: Path) -> list[dict[str, Any]]:
    """The races in a file; none where there is no such file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(races: Sequence[dict[str, Any]]) -> Iterator[str]:
    """For each case the verdicts, the share of wrong ones, and the seconds of a race."""
    yield f"{'case':40} {'longer by':>9} {'busy':>4} {'races':>5} {'wrong':>6} {'s':>6}  verdicts"
    cases: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in races:
        cases.setdefault((one["case"], one["percent"], one["busy"]), []).append(one)
    for (case, percent, beside), found in cases.items():
        verdicts = Counter(one["verdict"] for one in found)
        wrong = sum(is_wrong(one["verdict"], percent) for one in found)
        seconds = sum(one["seconds"] for one in found) / len(found)
        said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
        yield (
            f"{case[-40:]:40} {percent:8.3g}% {beside:4} {len(found):5} "
            f"{wrong / len(found):6.1%} {seconds:6.2f}  {said}"
        )


def is_wrong(verdict: str, percent: float) -> bool:
    """Whether a verdict is wrong. percent: how much slower the second side was made."""
    if percent == 0:
        return verdict in ("faster", "slower")
    alike = 1 / (1 + percent / 100) >= 1 - ALIKE
    return verdict == "slower" or (verdict == "as fast" and not alike)
