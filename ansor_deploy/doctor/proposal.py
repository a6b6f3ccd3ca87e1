"""Propose the target that a board is, from the facts that it reports."""

from collections.abc import Iterable, Sequence

from ..devices.facts import Facts
from ..system.host import x86_level, x86_vector_bytes
from ..system.words import count
from ..target import HOST, Target, with_cores
from .device import check_architecture, check_features, check_word_size

# LLVM's names of Arm's own cores, by the kernel's "implementer:part".
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

Likeness = tuple[bool, bool, bool, int]  # how well a target fits, as `likeness` returns it


def core(facts: Facts) -> str:
    """LLVM's name of the board's cores; "" if it is unknown, or the board has several kinds."""
    return _CORES.get(facts.parts[0], "") if len(facts.parts) == 1 else ""


def summary(facts: Facts) -> str:
    """A board's facts in one line."""
    cores = count(facts.cores, "core")
    words = [facts.model, facts.machine, core(facts), cores]
    words += [facts.gpu.name] if facts.gpu else []
    words += [f"{facts.memory >> 20} MiB free"] if facts.memory is not None else []
    words += [f"clock governor {' and '.join(facts.governors)}"] if facts.governors else []
    words += [f"{max(facts.temperatures.values()):.0f} C"] if facts.temperatures else []
    return ", ".join(filter(None, words))


def proposals(facts: Facts, targets: Iterable[Target]) -> list[Target]:
    """The targets that the board may be, the likeliest first.

    A target with more cores than the board, or of an x86 level, is proposed with the board's number
    of cores.
    """
    fitted = [_fitted(facts, target) for target in targets if target.name != HOST]
    alike = [(likeness(facts, target), target) for target in fitted]
    return [
        target
        for like, target in sorted(alike, key=lambda pair: pair[0] or (), reverse=True)
        if like is not None
    ]


def clear(facts: Facts, likely: Sequence[Target]) -> bool:
    """Whether the first proposal is certain, and not a guess."""
    if not likely:
        return False
    named, same_core, same_count, _ = first = likeness(facts, likely[0]) or (False, False, False, 0)
    rivals = {target.fingerprint for target in likely if likeness(facts, target) == first}
    return (named or same_core) and same_count and len(rivals) == 1


def _fitted(facts: Facts, target: Target) -> Target:
    fits = target.kind != "llvm" or facts.cores == target.cores
    if fits or (facts.cores > target.cores and not x86_level(target.cpu)):
        return target
    return with_cores(target, facts.cores)


def likeness(facts: Facts, target: Target) -> Likeness | None:
    """How well a target fits: whether the board's name, core and number of cores are the target's.

    The last number is how many instruction-set features the target names beyond its cpu. None where
    code for the target would not run there, or the target surely has another core.
    """
    checks = (
        check_architecture(facts.machine, target),
        check_word_size(str(facts.bits)),
        check_features(facts.flags, target),
    )
    known = core(facts)
    wrong = known and known != target.cpu
    if target.kind != "llvm" or wrong or any(check.level == "FAIL" for check in checks):
        return None
    name = target.description.partition(" (")[0]
    # On x86 the level is certain; instructions do not show which of a maker's cores it is.
    widest = (x86_vector_bytes(facts.flags) or 16) == target.vector_bytes
    same = known == target.cpu or (bool(x86_level(target.cpu)) and widest)
    named = bool(name) and facts.model.startswith(name)
    return named, same, facts.cores == target.cores, len(target.features)
