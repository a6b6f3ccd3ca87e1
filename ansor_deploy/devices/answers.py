"""The types of what an agent may send: its frames, and the answers of the functions it calls."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ..system.untrusted import Refused, admit, fit
from .arrivals import MOST

MOST_JSON = 1 << 20  # bytes in one frame
MOST_ITEMS = 1 << 14  # of a list in one frame: so many numbers fit

Number = Annotated[int, Meta(ge=0, le=2**53)]
Word = Annotated[str, Meta(max_length=100)]
Words = Annotated[str, Meta(max_length=1 << 16)]
Place = Annotated[str, Meta(pattern="^/", max_length=4096)]
Seconds = Annotated[float, Meta(ge=-1e9, le=1e9)]  # checked later for being possible
Points = tuple[Seconds | None, Seconds | None, Seconds | None]
Difference = Annotated[float, Meta(ge=0, le=1e300)]


class Hello(Struct, tag_field="says", tag="hello", forbid_unknown_fields=True):
    """The board is ours. session: the folder of its files there; the rest is for messages."""

    session: Place
    pid: Annotated[int, Meta(ge=1, le=2**31)]
    arch: Word
    python: Word


class Waiting(Struct, tag_field="says", tag="waiting", forbid_unknown_fields=True):
    """Another has the board."""

    holder: Annotated[str, Meta(max_length=2000)]


class Answer(Struct, tag_field="says", tag="answer", forbid_unknown_fields=True):
    """A request was served. id: that of the request; 0 for a ping."""

    id: Number
    ok: Any


class Failure(Struct, tag_field="says", tag="failure", forbid_unknown_fields=True):
    """A request failed. error: "board" for a fault of the board, or a kind of `WorkerFailure`."""

    id: Number
    error: Literal["board", "raised", "timeout", "crash"]
    message: Words


Said = Hello | Waiting | Answer | Failure


Clock = Annotated[int, Meta(ge=0, le=100_000)]  # MHz; 0 where unknown


class Errors(Struct, forbid_unknown_fields=True):
    """How far outputs are from the expected ones."""

    max_abs_err: Difference
    max_rel_err: Difference


class Found(Struct, forbid_unknown_fields=True):
    """A candidate's times, or why it has none."""

    seconds: Annotated[list[Seconds], Meta(max_length=MOST_ITEMS)]
    error: Literal["", "load", "wrong-output"]
    message: Words
    errors: Errors | None
    clock: Clock = 0

    def __post_init__(self) -> None:
        if bool(self.seconds) == bool(self.error) or not (self.error or self.errors):
            raise ValueError("neither the times of a right candidate nor an error")


class Call(Struct, forbid_unknown_fields=True):
    """A call of a kernel in a run, with the shapes of its arguments."""

    symbol: Word
    shapes: Annotated[list[Annotated[list[Number], Meta(max_length=64)]], Meta(max_length=1024)]
    seconds: Seconds


class Profiled(Struct, forbid_unknown_fields=True):
    """A run, and the calls of kernels in it. shape: which of the library's shapes was run."""

    seconds: Seconds
    shape: Annotated[int, Meta(ge=0, le=MOST_ITEMS)]
    calls: Annotated[list[Call], Meta(max_length=MOST_ITEMS)]


class Served(Struct, forbid_unknown_fields=True):
    """The figures of served requests, as in `arrivals.Served`."""

    seconds: Annotated[float, Meta(gt=0, le=1e9)]
    begun: Annotated[int, Meta(ge=1, le=MOST)]
    missed: Annotated[int, Meta(ge=0, le=MOST)]
    total: Points
    waiting: Points
    running: tuple[Seconds, Seconds, Seconds]


class Reference(Struct, forbid_unknown_fields=True):
    """Whether the inputs of a reference were made positive."""

    positive: bool


# The type of the answer of each function of the run worker.
_ANSWERS: Mapping[str, Any] = {
    "ansor_deploy.devices.library_calls:profile": Profiled,
    "ansor_deploy.devices.library_calls:run": None,
    "ansor_deploy.devices.library_calls:serve": Served,
    "ansor_deploy.devices.library_calls:threads": Annotated[int, Meta(ge=1, le=2**16)],
    "ansor_deploy.devices.library_calls:times": list[Seconds],
    "ansor_deploy.measure.head_to_head:head_to_head": list[Found],
    "ansor_deploy.measure.head_to_head:pulse": Seconds,
    "ansor_deploy.measure.runner:reference": Reference,
    "ansor_deploy.measure.runner:run": Found,
}


def read(text: bytes) -> Said:
    """The message in a frame's JSON; Refused where no agent would send it."""
    return admit(text, Said, MOST_JSON)  # type: ignore[arg-type]


def check_answer(function: str, payload: Mapping[str, Any], value: Any) -> None:
    """Refused unless the value is an allowed answer of the function to the payload."""
    fit(value, _ANSWERS[function])
    wanted = payload.get("runs") or len(payload.get("candidates", ()))
    if isinstance(value, list) and len(value) != wanted:
        raise Refused(f"{len(value)} results of {wanted}")
