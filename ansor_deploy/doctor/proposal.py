"""Which target a board is, as far as what it says of itself decides it."""

from collections.abc import Iterable, Sequence

from ..devices.facts import Facts
from ..system.host import x86_vector_bytes
from ..system.words import count
from ..target import HOST, Target
from .device import check_architecture, check_features, check_word_size

# Arm's own processors, as LLVM calls them, by what the kernel calls implementer and part.
_CORES = {
    "0x41:0xd03": "cortex-a53",
    "0x41:0xd04": "cortex-a35",
    "0x41:0xd05": "cortex-a55",
    "0x41:0xd07": "cortex-a57",
    "0x41:0xd08": "cortex-a72",
    "0x41:0xd09": "cortex-a73",
    "0x41:0xd0a": "cortex-a75",
    "0x41:0xd0b": "cortex-a76",
    "0x41:0xd0c": "neoverse-n1",
    "0x41:0xd40": "neoverse-v1",
    "0x41:0xd41": "cortex-a78",
    "0x41:0xd49": "neoverse-n2",
}

Likeness = tuple[bool, bool, bool]


def core(facts: Facts) -> str:
    """LLVM's name of the board's cores; "" where it is not known, or they are of two kinds."""
    return _CORES.get(facts.parts[0], "") if len(facts.parts) == 1 else ""


def summary(facts: Facts) -> str:
    """The board in one line."""
    cores = count(facts.cores, "core")
    words = [facts.model, facts.machine, core(facts), cores]
    words += [facts.gpu.name] if facts.gpu else []
    words += [f"{facts.memory >> 20} MiB free"] if facts.memory is not None else []
    words += [f"clock governor {' and '.join(facts.governors)}"] if facts.governors else []
    words += [f"{max(facts.temperatures.values()):.0f} C"] if facts.temperatures else []
    return ", ".join(filter(None, words))


def proposals(facts: Facts, targets: Iterable[Target]) -> list[Target]:
    """Those that the board may be, the likeliest first."""
    alike = [(likeness(facts, target), target) for target in targets if target.name != HOST]
    return [
        target
        for like, target in sorted(alike, key=lambda pair: pair[0] or (), reverse=True)
        if like is not None
    ]


def clear(facts: Facts, likely: Sequence[Target]) -> bool:
    """Whether the first of the proposals is what the board is, and no guess."""
    if not likely:
        return False
    named, same_core, same_count = first = likeness(facts, likely[0]) or (False,) * 3
    rivals = {target.fingerprint for target in likely if likeness(facts, target) == first}
    return (named or same_core) and same_count and len(rivals) == 1


def likeness(facts: Facts, target: Target) -> Likeness | None:
    """Whether the board's name, kind of core and number of cores are the target's.

    None where code for the target would not run there, or is surely for another core.
    """
    checks = (
        check_architecture(facts.machine, target),
        check_word_size(str(facts.bits)),
        check_features(facts.flags, target),
    )
    known, fewer = core(facts), facts.cores < target.cores
    wrong = known and known != target.cpu
    if target.kind != "llvm" or fewer or wrong or any(check.level == "FAIL" for check in checks):
        return None
    name = target.description.partition(" (")[0]
    same = known == target.cpu or x86_vector_bytes(facts.flags) == target.vector_bytes
    return bool(name) and facts.model.startswith(name), same, facts.cores == target.cores
