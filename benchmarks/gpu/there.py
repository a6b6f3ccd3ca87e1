"""Try the libraries of this folder on this machine's GPU.

    python3 run.py RESULT.json

It needs Python 3.10 or newer and NumPy, NVIDIA's driver, and for peers PyTorch. Each item runs in a
process of its own until its deadline, so that a kernel that hangs or crashes only ends its item.
Results are written at once; the same command continues where it was stopped.
"""

import argparse
import ctypes
import json
import lzma
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent
PLAN, PART = "plan.json", "part"
LOOSEST = 1e-3  # the largest error of an element, as a share of the output's largest value
_SECONDS = 540.0  # for all items
_ITEM = 90.0  # seconds for an item
_MOST_TRIES = 2  # of an item
_SHARE = 0.9  # of an item's seconds, after which a pack is stopped
_ROUNDS = 5  # turns of each side
_LEAST = 0.2  # seconds of a turn
_SAID = 500  # characters of an error
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG

Found = dict[str, Any]
Call = Callable[[], Any]


def main() -> None:
    """Do the items of the plan that are not done yet."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("result", type=Path)
    given.add_argument("--seconds", type=float, default=_SECONDS, help="of all items")
    given.add_argument("--deadline", type=float, default=_ITEM, help="seconds of an item")
    given.add_argument("--item", help=argparse.SUPPRESS)
    given.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    words = given.parse_args()
    if words.item:
        die_with(words.parent)
        sys.stdout.write("\n" + json.dumps(item(words)) + "\n")
        return
    found = json.loads(words.result.read_text()) if words.result.exists() else {}
    end = time.monotonic() + words.seconds
    for name in json.loads((FOLDER / PLAN).read_text())["items"]:
        known = found.get(name, {"tries": 0})
        if known["tries"] >= _MOST_TRIES or known.get("ended", PART) != PART:
            continue
        if (left := end - time.monotonic()) < min(words.deadline, words.seconds) / 4:
            sys.exit("no time is left: the same command goes on from here")
        found[name] = {**known, "tries": known["tries"] + 1}
        write(words.result, found)  # so that this try counts even if all of this is killed
        whole = left if name.startswith("pack ") else min(left, words.deadline)
        found[name] |= apart(name, words.result, whole)
        write(words.result, found)
        sys.stdout.write(f"{name}: {brief(found[name])}\n")
        sys.stdout.flush()


def die_with(parent: int) -> None:
    """Let the system kill this process when its parent ends, in whatever way."""
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("what began this has ended already")


def apart(name: str, result: Path, seconds: float) -> Found:
    """The result of an item, run in a process that is killed when its seconds are over."""
    command = [sys.executable, __file__, str(result), "--item", name, "--seconds", f"{seconds}"]
    command += ["--parent", str(os.getpid())]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    child = subprocess.Popen(command, start_new_session=True, **pipes)  # type: ignore[call-overload]
    try:
        out, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return {"ended": "timeout", "message": f"killed after {seconds:.0f} s"}
    if child.returncode:
        lines = err.strip().splitlines() or [f"status {child.returncode}"]
        kind = "crash" if child.returncode < 0 else "failed"
        return {"ended": kind, "message": " / ".join(lines[-3:])[-_SAID:]}
    return {"ended": "well", **json.loads(out.splitlines()[-1])}


def write(path: Path, found: Found) -> None:
    """Write the results, completely or not at all."""
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(json.dumps(found, indent=1))
    unfinished.replace(path)


def brief(found: Found) -> str:
    """An item's outcome in a line."""
    if found["ended"] != "well":
        return f"{found['ended']}: {found['message']}"
    times = [f"{side} {statistics.median(some) * 1e3:.3f} ms" for side, some in sides(found)]
    said = [f"off by {found['off']:.1e}"] if "off" in found else []
    return ", ".join([*said, *times]) or "done"


def sides(found: Found) -> list[tuple[str, list[float]]]:
    """Each side that was timed, with the seconds of a call in each turn."""
    return list(found.get("seconds", {}).items())


def item(words: argparse.Namespace) -> Found:
    """Do one item of the plan: "right LIBRARY BATCH", "race LIBRARY BATCH" or "pack NAME"."""
    kind, about, *rest = words.item.split()
    if kind == "pack":
        known = json.loads(words.result.read_text())[words.item]
        return pack(FOLDER / "packs" / about, known.get("results"), words.seconds * _SHARE)
    model, values = opened(about, int(rest[0]))
    network = about.partition("-")[0]
    return (
        right(model, values, network, rest[0]) if kind == "right" else race(model, values, network)
    )


def opened(name: str, batch: int) -> tuple[Any, dict[str, np.ndarray]]:
    """A library of this folder, which is unpacked at its first use, and its inputs."""
    sys.path.insert(0, str(FOLDER))
    load = import_module("ansor_deploy_runtime").load
    library = FOLDER / "libraries" / f"{name}.so"
    if not library.exists():
        content = lzma.decompress(library.with_suffix(".so.xz").read_bytes())
        unfinished = library.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(content)
        unfinished.replace(library)
    model = load(library)
    (one,) = [each for each in model.interfaces if each.inputs[0].shape[0] == batch]
    return model, inputs({info.name: (info.shape, info.dtype) for info in one.inputs})


def inputs(kinds: Mapping[str, tuple[tuple[int, ...], str]]) -> dict[str, np.ndarray]:
    """Seeded inputs, equal on every machine. kinds: shape and type of each, by name."""
    rng = np.random.default_rng(0)
    return {
        name: rng.standard_normal(shape, np.float32)
        if dtype == "float32"
        else rng.integers(0, 2, shape).astype(dtype)
        for name, (shape, dtype) in kinds.items()
    }


def right(model: Any, values: dict[str, np.ndarray], network: str, batch: str) -> Found:
    """Compare the outputs with ONNX Runtime's, twice.

    A second run shows whether the first has left something behind.
    """
    with np.load(FOLDER / "expected" / f"{network}_{batch}.npz") as file:
        wanted = dict(file)
    off = 0.0
    for _ in range(2):
        made = model(**values)
        off = max([off, *(distance(made[one], wanted[one]) for one in wanted)])
    if not off <= LOOSEST:
        raise SystemExit(f"wrong: off by {off:.1e} of the largest value")
    return {"off": off}


def distance(have: np.ndarray, want: np.ndarray) -> float:
    """The largest difference, as a share of the largest value; NaN if there is any NaN."""
    return float(np.max(np.abs(have - want)) / np.max(np.abs(want)))


def race(model: Any, values: dict[str, np.ndarray], network: str) -> Found:
    """Time the library and PyTorch in turns, from arrays in host memory to arrays in host memory.

    Without PyTorch the library is timed alone.
    """
    calls: dict[str, Call] = {"ours": lambda: model(**values)}
    why = ""
    try:
        sys.path.insert(0, str(FOLDER))
        calls |= import_module("torch_peers").peers(network, list(values.values()))
    except ImportError as error:
        why = str(error)
    seconds: dict[str, list[float]] = {side: [] for side in calls}
    for call in calls.values():
        timed(call)
    for _ in range(_ROUNDS):
        for side, call in calls.items():
            seconds[side].append(timed(call))
    return {"seconds": seconds, "without": why}


def timed(call: Call) -> float:
    """The seconds of a call, averaged over a turn."""
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < _LEAST or count < 1:
        call()
        count += 1
    return (time.perf_counter() - began) / count


def pack(folder: Path, known: Found | None, seconds: float) -> Found:
    """Measure a tuning pack for some seconds, after results known before; return all results."""
    results = folder / "results.json"
    if known and not results.exists():
        results.write_text(json.dumps(known))
    try:
        subprocess.run([sys.executable, str(folder / "measure.py")], check=True, timeout=seconds)
        ended: Found = {}
    except subprocess.TimeoutExpired:
        ended = {"ended": PART, "message": f"stopped after {seconds:.0f} s", "tries": 0}
    return {**ended, "results": json.loads(results.read_text())} if results.exists() else ended


if __name__ == "__main__":
    main()
