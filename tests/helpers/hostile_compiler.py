"""A compiler that fails on some programs: those with an unrolled loop."""

import os
import time

from ansor_deploy.codegen.kernels import kernel


def compile_kernel(payload):
    fault = os.environ["ANSOR_DEPLOY_TEST_FAULT"]
    if fault in ALWAYS or '"kind":3' in payload["program"]:
        kernel.limit_memory(0)
        kernel.limit_processor(payload["seconds"])
        FAULTS[fault]()
    return kernel.compile_kernel(payload)


def compute_without_end():
    while True:
        pass


def take_memory():
    taken = []
    while True:
        taken.append(bytearray(1 << 26))


def complain():
    raise ValueError("no such kernel")


ALWAYS = ("always", "complaint")
FAULTS = {
    "time": compute_without_end,
    "sleep": lambda: time.sleep(600),
    "memory": take_memory,
    "crash": os.abort,
    "always": os.abort,
    "complaint": complain,
}
