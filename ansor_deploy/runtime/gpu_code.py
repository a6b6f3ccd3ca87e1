"""A program for a GPU as machine code and launches, which can be run without a compiler.

softmax(x, y)
-->
m, e = buffers of its own                       workspace
kernel(m, x)        5 blocks of 128 threads     launches, in order
kernel_1(e, m, x)  20 blocks of 256 threads
...
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Launch:
    """One launch. grid, block: blocks and threads along x, y, z.

    arguments: positions among the parameters of the program, followed by its buffers. An entry
    without a grid launches nothing: its one argument must hold a zero, or the run fails with an
    IndexError whose text is the name.
    """

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class GpuKernel:
    """The code of a program. cubin: for the target's GPU. ptx: text, for newer GPUs.

    workspace: bytes of each buffer that its launches share.
    """

    launches: tuple[Launch, ...]
    workspace: tuple[int, ...]
    cubin: bytes
    ptx: bytes

    def to_bytes(self) -> bytes:
        """The program as bytes, which are stored like an object file."""
        return json.dumps(self.to_json()).encode()

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal program."""
        code = {name: base64.b64encode(getattr(self, name)).decode() for name in ("cubin", "ptx")}
        rest = {"launches": [asdict(one) for one in self.launches], "workspace": self.workspace}
        return {**rest, **code}

    @classmethod
    def from_bytes(cls, content: bytes) -> "GpuKernel":
        """The program of `to_bytes`."""
        return cls.from_json(json.loads(content))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "GpuKernel":
        """The program of a `to_json` object."""
        launches = tuple(
            Launch(one["name"], *(tuple(one[key]) for key in ("grid", "block", "arguments")))
            for one in data["launches"]
        )
        code = (base64.b64decode(data[name]) for name in ("cubin", "ptx"))
        return cls(launches, tuple(data["workspace"]), *code)

    @classmethod
    def library(cls, kernels: "Mapping[str, GpuKernel]") -> bytes:
        """Programs by the names of their functions, as one file."""
        return json.dumps({name: one.to_json() for name, one in kernels.items()}).encode()

    @classmethod
    def from_library(cls, content: bytes) -> "dict[str, GpuKernel]":
        """The programs of `library`, by the names of their functions."""
        return {name: cls.from_json(data) for name, data in json.loads(content).items()}
