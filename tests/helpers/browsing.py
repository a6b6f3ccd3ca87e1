"""A registry to browse, with rows of every kind and names that look like tags; the real server."""

import os
import signal
import subprocess
from contextlib import contextmanager
from dataclasses import replace

from ansor_deploy.registry.record import SearchEnd
from ansor_deploy.registry.store import Registry

from .cli_process import PROGRAM
from .registry_samples import TARGET, TVM, build, fill, key, measurement, record, workload

TAG = "<script>alert(1)</script>"
MODELS = ("ab" * 32, "cd" * 32)
CREATED = "2026-01-31T12:00:00Z"


def add_all(path):
    with Registry.open(path) as registry:
        _add_all(registry)


def _add_all(registry):
    fill(registry, 100)
    loser = registry.top(key(0), TVM, 1)[0].id
    registry.add_contest(record(key(0), 2e-3), [loser], CREATED)
    for digest, name in zip(MODELS, ("resnet.onnx", TAG), strict=True):
        registry.add_model(digest, name, [(key(n), 1) for n in range(5)])
    registry.add_tuning(TARGET.fingerprint, "ansor", 10, 20.0, "2026-01-31")
    registry.add_searches([SearchEnd(key(1), TVM, "ansor", 64, "limit", 64, CREATED)])
    registry.add_build(build("/model.so", MODELS[0], CREATED))
    failed = replace(measurement(key(2), error="crash"), message=f"{TAG} {'0f' * 32}")
    registry.add_batch([failed, *(measurement(key(0), 1e-3 / n) for n in range(1, 9))], [])
    named = replace(workload(30), name=TAG, op=TAG, shapes=((1, 8),), dtypes=("float32",))
    registry.add_workloads([named])
    registry.add_target(replace(TARGET, name=TAG, cores=2))
    registry.add_target(replace(TARGET, cores=8))


@contextmanager
def browsing(path, opens=None):
    """Run the command on a registry; yields its address and the process, which is then interrupted.

    opens: a browser's program.
    """
    command = [*PROGRAM, "registry", "browse", "--registry", path, "--port", "0"]
    environment = {**os.environ, "BROWSER": str(opens or "")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command += [] if opens else ["--no-open"]
    with subprocess.Popen(command, env=environment, **pipes) as server:
        try:
            url = server.stdout.readline().strip()
            yield url, server
        finally:
            server.send_signal(signal.SIGINT)
