"""Run an engine, with a mark before and after the run, for an observer of this process.

    python -m benchmarks.machine.marked ENGINE MODEL LIBRARY OUTPUT

The mark is the system call getsid, which nothing else makes. A first run comes before both marks,
as it sets up what later runs use. The first output is written to a file in NumPy's format.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from benchmarks.networks import engines


def main() -> None:
    """Run an engine on one thread."""
    engine, model, library, output = sys.argv[1:]
    run = engines.opened(engine, Path(model), Path(library))
    first, *_ = run()
    np.save(output, first)
    os.getsid(0)
    run()
    os.getsid(0)


if __name__ == "__main__":
    main()
