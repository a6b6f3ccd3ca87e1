"""The engines in a race of whole networks: a built library, ONNX Runtime, OpenVINO.

    python -m benchmarks.networks.engines ENGINE MODEL LIBRARY

loads one of them, runs it once and prints the peak memory of this process, in MB. Each runs with
its default settings on the given number of threads, in float32.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

Values = Mapping[str, np.ndarray]
Run = Callable[[], list[np.ndarray]]

OURS = "ours"


def inputs(library: Path) -> dict[str, np.ndarray]:
    """Seeded inputs of a built library, which are also those of its model."""
    from ansor_deploy.runtime.interface import interfaces
    from ansor_deploy.runtime.manifest_json import read_json
    from ansor_deploy.ship.verify.draws import seeded_inputs

    return seeded_inputs(interfaces(read_json(library))[0].inputs, seed=0, upper=2)


def ours(library: Path, values: Values, threads: int) -> Run:
    """A call of a built library."""
    from ansor_deploy.runtime import load

    model = load(library, threads)
    return lambda: list(model(**values).values())


def theirs(engine: str, model: Path, values: Values, threads: int) -> Run:
    """A call of another engine on a model, as `bench --beside` times it."""
    from ansor_deploy.ship.race.peers import open_peer

    call = open_peer(engine, model, threads).call
    return lambda: list(call(dict(values)))


def opened(engine: str, model: Path, library: Path) -> Run:
    """A call of any engine on one thread, with the library's seeded inputs."""
    values = inputs(library)
    return ours(library, values, 1) if engine == OURS else theirs(engine, model, values, 1)


def resident(engine: str, model: Path, library: Path) -> float:
    """The peak memory, in MB, of a process that loads a network and runs it once."""
    words = [sys.executable, "-m", "benchmarks.networks.engines", engine, str(model), str(library)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Call one engine once, and print this process's peak memory."""
    engine, *paths = sys.argv[1:]
    opened(engine, *map(Path, paths))()
    (line,) = re.findall(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    print(int(line) / 1e3)


if __name__ == "__main__":
    main()
