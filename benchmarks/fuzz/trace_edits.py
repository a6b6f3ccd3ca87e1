"""Edits of a trace that keep it well formed: most pass the firewall, and many fit the program.

An edit changes a decision or a number, takes another variable of the same kind, removes, moves or
repeats an instruction without outputs, or adds one: a loop's kind, a stage's place, a mark that
lowering obeys, a rewriting. The same random numbers make the same edits.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ansor_deploy.marks import marks
from ansor_deploy.registry.record import REWRITING
from ansor_deploy.system.digest import canonical_json

_NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 16, 32, 64, 100)
_VALUES = (True, False, 1, 2, 4, 8, 16, 32, 64)  # of marks; each key accepts some of them
_AT_LEAST = 3  # loops of a larger reordering


@dataclass
class Step:
    """One instruction, with its decision."""

    name: str
    inputs: list[Any]
    attrs: list[Any] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    decision: Any = None


def mutate(trace: str, edits: int, chance: random.Random) -> tuple[str, str]:
    """(the trace after so many edits, a description of them)."""
    instructions, decisions = json.loads(trace)
    decided = dict(map(tuple, decisions))
    steps = [Step(*one) for one in instructions]
    for at, step in enumerate(steps):
        step.decision = decided.get(at)
    done = [one for _ in range(edits) if (one := chance.choice(_EDITS)(steps, chance))]
    return _written(steps), "; ".join(done)


def _written(steps: list[Step]) -> str:
    chosen = [[at, one.decision] for at, one in enumerate(steps) if one.decision is not None]
    return canonical_json([[[s.name, s.inputs, s.attrs, s.outputs] for s in steps], chosen])


def _decision(steps: list[Step], chance: random.Random) -> str:
    """Change a choice; of tiles, permute the factors or change one."""
    if not (able := [one for one in steps if one.decision is not None]):
        return ""
    step = chance.choice(able)
    if isinstance(step.decision, list):
        sizes, at = list(step.decision), chance.randrange(len(step.decision))
        if chance.random() < 0.5:
            sizes[at] = chance.choice(_NUMBERS[1:])
        else:
            chance.shuffle(sizes)
        step.decision = sizes
    else:
        step.decision = chance.randrange(len(step.attrs[0]) if step.attrs else 8)
    return f"{step.name} decided {step.decision}"


def _number(steps: list[Step], chance: random.Random) -> str:
    """Change an integer."""
    parts = [(one, part) for one in steps for part in (one.inputs, one.attrs)]
    places = [(o, p, at) for o, p in parts for at, v in enumerate(p) if type(v) is int]
    if not places:
        return ""
    step, part, at = chance.choice(places)
    old = part[at]
    part[at] = chance.choice((*_NUMBERS, old + 1, old - 1, old * 2))
    return f"{step.name} with {part[at]} for {old}"


def _operand(steps: list[Step], chance: random.Random) -> str:
    """Take another variable of the same kind."""
    at = chance.randrange(len(steps))
    mine = [k for k, one in enumerate(steps[at].inputs) if _is_variable(one)]
    if not mine:
        return ""
    place = chance.choice(mine)
    old = steps[at].inputs[place]
    steps[at].inputs[place] = new = chance.choice(_made(steps[:at], old[0]))
    return f"{steps[at].name} of {new} for {old}"


def _lost(steps: list[Step], chance: random.Random) -> str:
    if not (able := _without_outputs(steps)):
        return ""
    return f"{steps.pop(chance.choice(able)).name} is lost"


def _moved(steps: list[Step], chance: random.Random) -> str:
    """Move an instruction to a later place, or repeat it there."""
    if not (able := _without_outputs(steps)):
        return ""
    at = chance.choice(able)
    step, twice = steps[at], chance.random() < 0.3
    if not twice:
        steps.pop(at)
    copy = Step(step.name, list(step.inputs), list(step.attrs))
    steps.insert(chance.randint(at, len(steps)), copy)
    return f"{step.name} is {'repeated' if twice else 'later'}"


def _marked(steps: list[Step], chance: random.Random) -> str:
    """Add a mark that lowering obeys, on any loop."""
    found = [pair for one in marks().values() for pair in one.values.items()]
    key, fits = chance.choice(found)
    if not (values := [one for one in _VALUES if fits(one)]):
        return ""
    value = chance.choice(values)
    return _added(
        steps, chance, "Annotate", "l", lambda made: Step("Annotate", [*made, value], [key])
    )


def _annotated(steps: list[Step], chance: random.Random) -> str:
    """Repeat one of the trace's annotations on another loop or block."""
    if not (
        able := [one for one in steps if one.name == "Annotate" and _is_variable(one.inputs[0])]
    ):
        return ""
    one = chance.choice(able)
    value, kind = one.inputs[1], one.inputs[0][0]
    what = f"Annotate {one.attrs[0]}"
    return _added(
        steps, chance, what, kind, lambda made: Step("Annotate", [*made, value], one.attrs)
    )


def _placed(steps: list[Step], chance: random.Random) -> str:
    """Add a primitive on any loops and blocks."""
    name, kinds, attrs, makes = chance.choice(_PRIMITIVES)
    outputs = [f"{kind}{chance.randrange(500_000, 900_000)}" for kind in makes]
    chosen = [chance.choice(one) for one in attrs]
    inputs = [*map(chance.choice, _FURTHER.get(name, ()))]
    return _added(
        steps, chance, name, kinds, lambda made: Step(name, [*made, *inputs], chosen, outputs)
    )


def _rewriting(steps: list[Step], chance: random.Random) -> str:
    """Change a rewriting's block or size, or remove or add one."""
    able = [at for at, one in enumerate(steps) if one.attrs == [REWRITING]]
    step = f'"winograd b{chance.randrange(4)} {chance.choice((1, 2, 3, 4, 4, 6, 9))}"'
    if able and chance.random() < 0.2:
        steps.pop(able[0])
        return "no rewriting"
    if able:
        steps[able[0]].inputs[1] = step
    elif chance.random() < 0.2:
        root = Step("GetSBlock", [], ["root", "main"], ["b900000"])
        steps[:0] = [root, Step("Annotate", ["b900000", step], [REWRITING])]
    else:
        return ""
    return f"rewriting {step}"


def _added(
    steps: list[Step], chance: random.Random, what: str, kinds: str, make: Callable[[Any], Step]
) -> str:
    """Add an instruction anywhere, on variables of these kinds that exist there."""
    at = chance.randint(1, len(steps))
    made = [_made(steps[:at], kind) for kind in kinds]
    if not all(made):
        return ""
    # Mostly the newest: older loops may have been split or fused.
    chosen = [chance.choice(one[-_NEWEST:] if chance.random() < 0.7 else one) for one in made]
    steps.insert(at, make(chosen))
    return f"{what} of {', '.join(chosen)}"


_NEWEST = 12  # variables that count as new


def _made(steps: list[Step], kind: str) -> list[str]:
    return [one for step in steps for one in step.outputs if one[0] == kind]


def _without_outputs(steps: list[Step]) -> list[int]:
    return [at for at, one in enumerate(steps) if not one.outputs]


def _is_variable(value: Any) -> bool:
    return isinstance(value, str) and value[:1] in "blv" and value[1:].isdigit()


# Name, kinds of the inputs, choices for each attribute, kinds of the outputs.
_PRIMITIVES: tuple[tuple[str, str, tuple[Any, ...], str], ...] = (
    *((name, "l", (), "") for name in ("Parallel", "Parallel", "Vectorize", "Vectorize", "Unroll")),
    ("ComputeInline", "b", (), ""),
    ("ReverseComputeInline", "b", (), ""),
    ("ComputeAt", "bl", ((False, True), (-1, -2, 0)), ""),
    ("ReverseComputeAt", "bl", ((False, True), (-1, -2, 0)), ""),
    ("DecomposeReduction", "bl", (), "b"),
    ("RFactor", "l", ((0, 1, 2, -1),), "b"),
    ("Reorder", "ll", (), ""),
    ("Reorder", "l" * _AT_LEAST, (), ""),
    ("Fuse", "ll", ((True, False),), "l"),
    ("Split", "l", ((True, False), (False,)), "ll"),
    ("CacheWrite", "b", ((0,), ("global", "local")), "b"),
    ("CacheRead", "b", ((0, 1), ("global", "local")), "b"),
    ("SetScope", "b", ((0,), ("global", "local")), ""),
    ("Blockize", "l", ((True, False),), "b"),
    ("AddUnitLoop", "l", (), "l"),
)
# Choices for inputs that are not variables.
_FURTHER: dict[str, tuple[Any, ...]] = {
    "Split": (("None",), (2, 3, 4, 8, 16)),
    "CacheWrite": (([],),),
    "CacheRead": (([],),),
}
_EDITS = (
    *(_decision, _decision, _number, _operand, _operand, _lost, _moved, _moved),
    *(_marked, _marked, _annotated, _annotated, _placed, _placed, _placed, _rewriting),
)
