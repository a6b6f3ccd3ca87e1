"""The README of a package: what is in it, how it is run, and the model's inputs and outputs."""

from ...runtime.interface import Interface, declared, interfaces
from ..manifest import Manifest

_TEXT = """\
{library}: built by ansor-deploy {tool} from {model}
for {triple} ({target}), with glibc {glibc} or newer and libstdc++{gpu}.

{interfaces}

Is it whole?    sha256sum -c SHA256SUMS

{how}"""
_C = """\
Nothing else has to be installed. ./run without files lists the inputs and outputs; then a file for
each of them, the bytes of its elements, one after the other:

    ./run {library}
    ./run {library} {inputs} {outputs}

A program of your own (include/ansor_deploy.h says all of it), which finds lib/ beside itself:

    cc -Iinclude app.c -Llib -lansor_deploy -Wl,-rpath,'$ORIGIN/lib' -o app

Where that is another machine than the one it will run on, add -Wl,--allow-shlib-undefined.
"""
_PYTHON = """\
Python 3.10 or later and NumPy have to be installed (Debian: apt-get install python3-numpy), and
nothing else. In this folder:

    python3 -m ansor_deploy_runtime {library}
    python3 -m ansor_deploy_runtime {library} {inputs} -o outputs.npz

In a program:

    import ansor_deploy_runtime
    model = ansor_deploy_runtime.load("{library}")
    outputs = model(**arrays)  # by the names of the inputs

Types that NumPy lacks, such as bfloat16, take the package ml_dtypes.
"""


def readme(library: str, kind: str, glibc: tuple[int, int], manifest: Manifest) -> str:
    """The text for the library of a manifest. kind: "c" or "python"."""
    # A C program passes lengths itself; Python passes them for its caller.
    has_length = kind == "c" and bool(manifest.ranges)
    every = (declared if has_length else interfaces)(manifest.to_json())
    if kind == "c":
        inputs = " ".join(f"input-{at}" for at in range(len(every[0].inputs)))
        outputs = " ".join(f"output-{at}" for at in range(len(every[0].outputs)))
    else:
        inputs = " ".join(f"'{info.name}'=FILE.npy" for info in every[0].inputs)
        outputs = ""
    how = (_C if kind == "c" else _PYTHON).format(library=library, inputs=inputs, outputs=outputs)
    return _TEXT.format(
        library=library,
        tool=manifest.tool,
        model=manifest.model.name,
        triple=manifest.target.triple,
        target=" or ".join(one.target.name for one in manifest.codes or (manifest,)),
        glibc="{}.{}".format(*glibc),
        gpu=_gpu(manifest),
        interfaces="\n".join(map(_interface, every)),
        how=how,
    )


def _gpu(manifest: Manifest) -> str:
    """The requirements of a library for a GPU; "" for a CPU."""
    gpu = manifest.target.gpu
    return f",\nand a GPU of NVIDIA's ({gpu.arch} or newer) with its driver" if gpu else ""


def _interface(one: Interface) -> str:
    return f"takes {one.takes}\ngives {one.gives}"
