"""A library's profile as text: kernels, operators, and a timeline."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..measure.roof import products
from ..registry.title import shape_text
from ..system.atomic_file import write_whole
from ..system.words import count
from .text import KEY, TITLE, cut, latency, node_lines, share

if TYPE_CHECKING:
    from ..measure.roof import Roof
    from ..runtime.profile import KernelTime, Profile
    from ..ship.race.node_groups import Group

HEADER = ("key", "kernel", "time", "share", "GFLOP/s", "GB/s", "limit")
ROW = f"{{:{KEY}}} {{:{TITLE}}} {{:>8}} {{:>6}} {{:>7}} {{:>5}} {{:>5}}"
NODES = 52  # characters that describe a group of nodes


def title(kernel: KernelTime) -> str:
    """A kernel's computation, in a line."""
    if kernel.task:
        return str(kernel.task["title"])
    result = shape_text(kernel.shapes[-1]) if kernel.shapes else ""
    return f"{kernel.name} {result}".strip()


def lines(profile: Profile, roof: Roof, *, nodes: bool = False) -> list[str]:
    """Kernels in the order of the network, then operators, the slowest first.

    nodes: list below each kernel the model's nodes that it computes. "limit" is the share of the
    time that the arithmetic of the run's threads, or the caches that can hold the tensors, would
    need at least; "room" is what all kernels take beyond that. All int8 kernels together have a
    line with their share of what the processor can do.
    """
    rest = max(0.0, profile.rest)  # a negative rest is noise
    whole = profile.seconds
    kernels = (
        line
        for kernel in profile.kernels
        for line in (*_table([_cells(kernel, whole, roof)]), *(_nodes(kernel) if nodes else ()))
    )
    operators = [("", name, *_times(group, whole)) for name, group in by_operator(profile)]
    return [
        *_table([HEADER]),
        *kernels,
        *_table([("", "the rest", latency(rest), share(rest / whole), "", "", "")]),
        f"{count(len(profile.kernels), 'kernel')}, {latency(profile.seconds)} a run",
        *_room(profile, roof),
        *_of_bytes(profile, roof),
        "",
        *_table([("", "operator", *HEADER[2:5], "", ""), *operators]),
    ]


def _room(profile: Profile, roof: Roof) -> list[str]:
    """The most that tuning could save, if that is known."""
    room = roof.room(profile)
    return [f"room: {latency(room)} of a run lie above the kernels' limits"] if room else []


def _of_bytes(profile: Profile, roof: Roof) -> list[str]:
    """The speed of int8 dot products, if there are any."""
    kernels = [kernel for kernel in profile.kernels if products(kernel)]
    if not kernels:
        return []
    seconds = sum(kernel.seconds for kernel in kernels)
    rate = 2 * sum(map(products, kernels)) / seconds / 1e9
    peak = roof.byte_gops
    of_peak = f", {rate / peak:.0%} of the {peak:.0f} that this machine reaches" if peak else ""
    return [f"products of bytes: {rate:.0f} Gop/s in {latency(seconds)}{of_peak}"]


def _nodes(kernel: KernelTime) -> list[str]:
    return node_lines(((node["op"], node["name"]) for node in kernel.nodes), KEY + 1)


def by_operator(profile: Profile) -> list[tuple[str, list[KernelTime]]]:
    """A profile's kernels by operator, the slowest operator first."""
    groups: dict[str, list[KernelTime]] = {}
    for kernel in profile.kernels:
        groups.setdefault(kernel.op, []).append(kernel)
    return sorted(groups.items(), key=lambda item: -sum(kernel.seconds for kernel in item[1]))


def beside_lines(name: str, groups: Sequence[Group]) -> list[str]:
    """Groups of nodes, with the times of our kernels and of another engine's.

    The other engine's profiler was on.
    """
    found = [(_about(one), one.ours_ms, one.theirs_ms) for one in groups]
    found.append(("all", sum(a for _, a, _ in found), sum(b for _, _, b in found)))
    rows = [(text, _ms(ours), _ms(theirs), _ratio(ours, theirs)) for text, ours, theirs in found]
    header = (f"nodes; {name} with its profiler on", "ours", "theirs", "ratio")
    return [f"{one:{NODES}} {a:>8} {b:>8} {c:>6}".rstrip() for one, a, b, c in [header, *rows]]


def _ms(taken: float) -> str:
    return latency(taken / 1e3) if taken else ""


def _ratio(ours: float, theirs: float) -> str:
    return f"{ours / theirs:.2f}" if ours and theirs else ""


def _about(group: Group) -> str:
    """A group in short: its first node, and the number of others."""
    if not group.nodes:
        return "layouts, and what is of no known node"
    more = f" and {len(group.nodes) - 1} more" if group.nodes[1:] else ""
    return cut(group.nodes[0], NODES - len(more)) + more


def write_trace(profiles: Sequence[tuple[str, Profile]], path: Path) -> None:
    """Write a run of each profile as a timeline that Perfetto and Chrome's tracing can read.

    Kernels follow one another, as they were timed; times are in microseconds.
    """
    events = [event for at, one in enumerate(profiles) for event in _events(at, *one)]
    write_whole(path, json.dumps({"traceEvents": events}).encode())


def _events(number: int, name: str, profile: Profile) -> Iterator[dict[str, Any]]:
    yield {"name": "process_name", "ph": "M", "pid": number, "args": {"name": name}}
    began = 0.0
    for kernel in profile.kernels:
        task: Mapping[str, Any] = kernel.task or {}
        known = {name: task.get(name) for name in ("key", "record", "flops", "bytes")}
        known |= {"op": kernel.op, "nodes": kernel.nodes}
        span = {"ph": "X", "pid": number, "tid": 0, "ts": began * 1e6, "dur": kernel.seconds * 1e6}
        yield {"name": title(kernel), "cat": kernel.op, "args": known, **span}
        began += kernel.seconds


def _cells(kernel: KernelTime, whole: float, roof: Roof) -> tuple[str, ...]:
    task: Mapping[str, Any] = kernel.task or {}
    limit = roof.share(kernel)
    rate = f"{task['bytes'] / kernel.seconds / 1e9:.1f}" if "bytes" in task else ""
    reached = f"{limit:.0%}" if limit else ""
    name = task.get("key", "")[:KEY], cut(title(kernel), TITLE)
    return *name, *_times([kernel], whole), rate, reached


def _times(group: Sequence[KernelTime], whole: float) -> tuple[str, str, str]:
    """The time, its share of the whole, and GFLOP/s."""
    seconds = sum(kernel.seconds for kernel in group)
    flops = sum((kernel.task or {}).get("flops", 0.0) for kernel in group)
    speed = f"{flops / seconds / 1e9:.1f}" if flops and seconds else ""
    return latency(seconds), share(seconds / whole), speed


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    return [ROW.format(*row, *[""] * (len(HEADER) - len(row))).rstrip() for row in rows]
