"""Parsers of option values: each function is the type of an option for click."""

import re
from contextlib import suppress

import click

SECONDS = (3600.0, 60.0, 1.0)  # in an hour, a minute, a second
NUMBER = r"\d+(?:\.\d+)?"
DURATION = rf"(?:({NUMBER})h)?(?:({NUMBER})m)?(?:({NUMBER})s)?"

AGE = r"(\d+)(d|w)"

LATENCY = rf"({NUMBER})(us|ms|s)"
RATE = rf"({NUMBER})/s"
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}

SIZE = rf"({NUMBER}) ?([kmg]?)(i?)b"
_THOUSANDS = {"": 0, "k": 1, "m": 2, "g": 3}

Fail = click.BadParameter


def parse_duration(text: str) -> float:
    """The seconds that "90s", "10m" or "1h30m" means."""
    match = re.fullmatch(DURATION, text.strip().lower())
    if not match or not any(match.groups()):
        raise Fail(f"{text!r} is not a duration; write it like 90s, 10m or 1h30m")
    parts = zip(match.groups(), SECONDS, strict=True)
    seconds = sum(float(number or 0) * unit for number, unit in parts)
    if seconds <= 0:
        raise Fail(f"{text!r} is no time at all; for a build without tuning use --trials 0")
    return seconds


def parse_age(text: str) -> int:
    """The days that "30d" or "8w" means."""
    match = re.fullmatch(AGE, text.strip().lower())
    if not match or not int(match[1]):
        raise Fail(f"{text!r} is not an age; write it like 30d or 8w")
    return min(int(match[1]) * (7 if match[2] == "w" else 1), 100_000)


def days_ago(days: int) -> str:
    """The time so many days ago, in UTC, as ISO 8601 writes it."""
    from datetime import datetime, timedelta, timezone

    now = datetime.now(timezone.utc)
    return (now - timedelta(min(days, now.toordinal() - 1))).isoformat(timespec="seconds")


def parse_day(text: str) -> str:
    """The day that "2026-01-31" means, or that "7d" was ago, as ISO 8601 writes it."""
    from datetime import date

    with suppress(ValueError):
        return date.fromisoformat(text.strip()).isoformat()
    with suppress(Fail):
        return days_ago(parse_age(text))[:10]
    raise Fail(f"{text!r} is neither a day nor an age; write it like 2026-01-31 or 7d")


def parse_share(text: str) -> float:
    """The fraction that "0.01" or "1%" means."""
    number, percent = text.strip(), text.strip().endswith("%")
    try:
        share = float(number.rstrip("%")) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise Fail(f"{text!r} is not a share of the time; write a fraction like 0.01, or 1%")
    return share


def parse_size(text: str) -> int:
    """The bytes that "20MB" or "20MiB" means."""
    match = re.fullmatch(SIZE, text.strip(), re.IGNORECASE)
    if not match or not float(match[1]):
        raise Fail(f"{text!r} is not a size; write it like 20MB, 512kB or 1.5GiB")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** _THOUSANDS[match[2].lower()])


def parse_tensor_shape(text: str) -> tuple[int, ...]:
    """The shape that "1,56,56,64" or "1x56x56x64" means; "scalar" has no dimensions."""
    sizes = [] if text == "scalar" else re.split("[,x]", text.replace(" ", ""))
    if not all(re.fullmatch(r"[0-9]+", size) for size in sizes):
        raise Fail(f"{text!r} is not a shape; write it like 1,56,56,64")
    return tuple(map(int, sizes))


def parse_tolerance(text: str) -> tuple[str, float]:
    """The output's name and the number in "boxes=0.5"; "0.5" has the name "", for all outputs."""
    name, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise Fail(f"{text!r} is not a tolerance; write it like 1e-3, or boxes=0.5 for one output")
    return name, value


def parse_latency(text: str) -> float:
    """The seconds that "5ms" means."""
    match = re.fullmatch(LATENCY, text.strip().lower())
    if not match or not float(match[1]):
        raise Fail(f"{text!r} is not a latency; write it like 5ms, 800us or 1.5s")
    return float(match[1]) * UNITS[match[2]]


def parse_rate(text: str) -> float:
    """The requests a second that "100/s" means."""
    match = re.fullmatch(RATE, text.strip().lower())
    if not match or not float(match[1]):
        raise Fail(f"{text!r} is not a rate; write it like 100/s or 0.5/s")
    return float(match[1])


def parse_goal(text: str) -> tuple[str, float]:
    """The model's name and the seconds in "resnet18.onnx=5ms"."""
    model, _, latency = text.rpartition("=")
    match = re.fullmatch(LATENCY, latency.strip().lower())
    if not model or not match or not float(match[1]):
        raise Fail(f"{text!r} is not a model's latency; write it like net.onnx=5ms")
    return model, float(match[1]) * UNITS[match[2]]
