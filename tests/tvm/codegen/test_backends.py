"""TVM's import takes long enough: what it has for GPUs is loaded where a GPU is asked for."""

import subprocess
import sys

PROGRAM = """
import os
from ansor_deploy._tvm import tvm_target
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target
from tvm.backend.loader import is_loaded
for name in ("intel-cpu-avx2", "v100"):
    tvm_target(load_target(name, [shipped("targets")]))
    print(name, is_loaded("cuda"), is_loaded("adreno"))
print("TVM_DEVICE_BACKEND_AUTOLOAD" in os.environ)
"""


def test_a_backend_is_loaded_where_a_target_needs_it():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    expected = ["intel-cpu-avx2 False False", "v100 True False", "False"]
    assert done.stdout.splitlines() == expected
