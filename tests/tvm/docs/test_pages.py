"""What the pages tell a reader to type works: each is run from top to bottom, in a shell.

A page finds in its folder `model.onnx`, the same under other names, and `image.npy`; $EXAMPLES is
the folder of that name. Builds measure few candidates, or none where no later command needs their
records, and what times a library takes a moment.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from helpers.fences import PAGES, ROOT, needs, script
from helpers.graphs import model, node, randn

SHAPE = (1, 3, 16, 16)
PRELUDE = f"import numpy; image = numpy.zeros({SHAPE}, 'float32')"
QUICK = {"README", "bazel", "devices", "how_it_works", "projects", "python", "targets"}
TOOL = """\
#!/bin/sh
case "$1" in
    build) set -- "$@" --trials "$TRIALS" --beside none ;;
    tune) set -- "$@" --trials 2 ;;
    bench | compare | profile | report) set -- "$@" --time 0.5s ;;
esac
exec {python} -m ansor_deploy "$@"
"""


def network():
    """A convolutional network with an input `data` and an output `prob`."""
    layers = [
        node("Conv", "data w", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", "c", "r"),
        node("GlobalAveragePool", "r", "g"),
        node("Flatten", "g", "f"),
        node("MatMul", "f m", "prob"),
    ]
    return model(
        layers, {"data": SHAPE}, ["prob"], {"w": randn(0, 16, 3, 3, 3), "m": randn(1, 16, 4)}
    )


@pytest.fixture
def folder(tmp_path):
    """Where a page's commands are typed."""
    for name in ("model", "a", "b", "resnet18"):
        onnx.save(network(), tmp_path / f"{name}.onnx")
    np.save(tmp_path / "image.npy", np.zeros(SHAPE, np.float32))
    return tmp_path


@pytest.fixture
def path(tmp_path_factory):
    """A path on which `ansor-deploy`, and Python, are those under test."""
    programs = tmp_path_factory.mktemp("bin")
    (programs / "ansor-deploy").write_text(TOOL.format(python=sys.executable))
    (programs / "ansor-deploy").chmod(0o755)
    return f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"


def _parameter(page):
    name = str(page.relative_to(ROOT))
    return pytest.param(page, id=name, marks=[] if page.stem in QUICK else pytest.mark.slow)


@pytest.mark.parametrize("page", [_parameter(page) for page in PAGES if script(page)])
def test_what_the_page_says_works(page, folder, path, tmp_path_factory):
    if lacking := [name for name in needs(page) if shutil.which(name) is None]:
        pytest.skip(f"not installed: {', '.join(lacking)}")
    home = tmp_path_factory.mktemp("home")
    own = {f"XDG_{kind}_HOME": str(home / kind) for kind in ("DATA", "CONFIG", "STATE")}
    own |= {"HOME": str(home), "PATH": path, "EXAMPLES": str(ROOT / "examples")}
    own["TRIALS"] = "0" if page.stem in QUICK else "2"
    done = subprocess.run(
        ["/bin/sh", "-c", script(page, PRELUDE)], cwd=folder, env={**os.environ, **own},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
