"""Freed memory is kept: its pages are not mapped and cleared again for each block."""

import os
import subprocess
import sys

SCRIPT = """
import resource
from ansor_deploy.system.heap import keep_freed_blocks

keep_freed_blocks()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    blocks = [b"a" * 1_000_000 for _ in range(4)]
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_few_pages_are_mapped_for_many_large_blocks():
    line = [sys.executable, "-c", SCRIPT]
    # These variables decide instead, and Dask sets one where it is imported.
    env = {name: word for name, word in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 10_000  # all of the blocks have 100 000
