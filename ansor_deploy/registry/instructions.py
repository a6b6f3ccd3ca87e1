"""The instructions that a foreign trace may have: those of the rules and of MetaSchedule.

A trace is a program for TVM's scheduler, and some of its instructions reach further than loops:
`Annotate(loop, "pragma_import_llvm", ...)` links foreign machine code into the library,
`UnsafeSetDType` and `Split` without its predicate write beyond the end of a buffer. Anything that
is not in the tables here is refused. Whether a trace fits its program is left to TVM.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..marks import marks
from ..system.checks import INT32, Check, flag, integer, is_int, list_of, number, one_of, text
from ..system.untrusted import Refused, quoted, refuse, strict_json
from .index_map import check_index_map, check_padding
from .record import REWRITING

MOST_CHARACTERS = 262_144
MOST_INSTRUCTIONS = 1000
MOST_PARTS = 64  # inputs or outputs of an instruction: the loops of a deep nest
MOST_COPIES = 1024  # of a loop's body that unrolling or vectorising may make

_SCOPES = {"llvm": ("global", "local"), "cuda": ("global", "local", "shared")}


_position = integer(0, 64)
_copies = integer(0, MOST_COPIES)
_scope = one_of("global", "local", "shared")
_variable = text(r"[blv][0-9]{1,6}")
_candidates = list_of(integer(-INT32, INT32), 1, MOST_COPIES)
_chances = list_of(number(0, 1), 1, MOST_COPIES)
_intrinsic = one_of(
    *("", "dot_16x4_vnni", "dot_16x4_avx512", "dot_4x4_i8i8s32_neon", "dot_4x4_i8i8s32_sdot"),
    *("dot_4x4_u8u8u32_udot", "dot_4x4_u8u8i32_hdot"),
)


def _padding(value: Any) -> bool:
    """Whether a value is None or a map to a constant; Refused where it is another map."""
    if isinstance(value, str):
        check_padding(value)
    return value is None or isinstance(value, str)


def _map(value: Any) -> bool:
    """Whether a value is a string; Refused where it is no index map."""
    if isinstance(value, str):
        check_index_map(value)
    return isinstance(value, str)


def _odds(value: Any) -> bool:
    return _chances(value) and abs(sum(value) - 1) < 0.01


# Keys of annotations, without those of marks: the letter of what they annotate, and a check of
# their values.
_KEYS: dict[str, tuple[str, Check]] = {
    "pragma_auto_unroll_max_step": ("l", _copies),
    "pragma_unroll_explicit": ("l", flag),
    REWRITING: ("b", text(r"[a-z]{1,20} [A-Za-z_][A-Za-z0-9_]{0,100} [1-9]")),
    "meta_schedule.layout_rewrite_preproc": ("b", flag),
    "meta_schedule.parallel": ("b", integer(0, 1 << 20)),
    "meta_schedule.vectorize": ("b", _copies),
    "meta_schedule.unroll_explicit": ("b", _copies),
    "meta_schedule.unroll_implicit": ("b", _copies),
    "meta_schedule.random_compute_producer": ("b", flag),
    "meta_schedule.tiling_structure": ("b", text(r"[SR]{1,16}")),
    "meta_schedule.auto_tensorize": ("b", _intrinsic),
    "meta_schedule.auto_tensorize_init": ("b", _intrinsic),
    "meta_schedule.cooperative_fetch": ("b", _copies),
    "meta_schedule.thread_extent_low_inclusive": ("b", _copies),
    "meta_schedule.thread_extent_high_inclusive": ("b", _copies),
}


@cache
def _keys() -> dict[str, tuple[str, Check]]:
    """All keys of annotations. Marks are loaded only when a foreign record is read."""
    return _KEYS | {
        key: ("l", fits) for one in marks().values() for key, fits in one.values.items()
    }


def _is_key(value: Any) -> bool:
    return isinstance(value, str) and value in _keys()


@dataclass(frozen=True)
class _Form:
    """The form of an instruction.

    inputs, outputs: regular expressions with a letter for each value: b, l, v for a block, loop or
    number that an earlier instruction made, n for "None", i for an integer, t for true or false,
    s for a string, e for an empty list, m for an index map. attrs: a check for each attribute.
    further: checks the parts together, and notes what follows from them.
    """

    inputs: str
    attrs: tuple[Check, ...] = ()
    outputs: str = ""
    further: Callable[[_Walk, Any, Any, Any, Any], None] | None = None


def check_trace(trace: str, kind: str) -> None:
    """Refused unless the text is a trace of allowed instructions for a target of this kind."""
    steps = strict_json(trace, MOST_CHARACTERS)
    shaped = isinstance(steps, list) and [type(part) for part in steps] == [list, list]
    refuse(not shaped, "a trace is a list of instructions and one of decisions")
    instructions, decisions = steps
    many = len(instructions)
    refuse(many > MOST_INSTRUCTIONS, f"{many} instructions; a trace may have {MOST_INSTRUCTIONS}")
    chosen = _chosen(decisions)
    walk = _Walk(kind)
    for position, instruction in enumerate(instructions):
        walk.step(instruction, chosen.pop(position, None))
    refuse(chosen, f"a decision for instruction {min(chosen, default=0)}, which is not there")


def _chosen(decisions: list[Any]) -> dict[int, Any]:
    pairs = all(isinstance(d, list) and len(d) == 2 for d in decisions)
    refuse(not pairs, "a decision is a position and what was decided")
    found = {position: value for position, value in decisions if is_int(position, 0, INT32)}
    refuse(len(found) != len(decisions), "decisions have whole positions, each once")
    refuse(any(value is None for value in found.values()), "a decision is null")
    return found


class _Walk:
    """Checks instructions in order, and notes what they have made. kind: that of the target."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.made: set[str] = set()
        self.numbers: dict[str, int] = {}  # the value of each variable v
        self.extents: dict[str, int] = {}  # of the loops whose length a split has fixed
        self.moved = False  # whether a block was moved, and so computes a part of its buffer

    def step(self, instruction: Any, decision: Any) -> None:
        """Check one instruction, and note what it makes."""
        parts = isinstance(instruction, list) and [type(part) for part in instruction]
        if parts != [str, list, list, list]:
            raise Refused(f"{quoted(instruction)} is no instruction")
        name, inputs, attrs, outputs = instruction
        if name not in _FORMS:
            raise Refused(f"instruction {quoted(name)} is not allowed")
        form = _FORMS[name]
        refuse(max(len(inputs), len(outputs)) > MOST_PARTS, f"{name} has too many parts")
        letters = "".join(map(self._letter, inputs))
        if not re.fullmatch(form.inputs, letters):
            raise Refused(f"{name} of {quoted(inputs)}")
        fit = len(attrs) == len(form.attrs)
        if not (fit and all(check(attr) for check, attr in zip(form.attrs, attrs, strict=True))):
            raise Refused(f"{name} with {quoted(attrs)} is not allowed")
        self._machine(name, attrs)
        self._make(name, form, outputs)
        has = "lacks its" if decision is None else "has a"
        refuse((decision is None) == name.startswith("Sample"), f"{name} {has} decision")
        if form.further is not None:
            form.further(self, inputs, attrs, outputs, decision)

    def _letter(self, value: Any) -> str:
        if isinstance(value, str):
            if value in self.made:
                return value[0]
            if value.startswith("{"):
                check_index_map(value)
                return "m"
            if value[:1] == value[-1:] == '"' and len(value) > 1:
                return "s"
            return "n" if value == "None" else "?"
        if type(value) is int:
            return "i"
        return {"True": "t", "False": "t", "[]": "e"}.get(repr(value), "?")

    def _machine(self, name: str, attrs: list[Any]) -> None:
        refuse(name == "Bind" and self.kind != "cuda", "threads of a GPU on a CPU")
        if name in ("CacheRead", "CacheWrite", "SetScope"):
            lacking = attrs[1] not in _SCOPES[self.kind]
            refuse(lacking, f"{name} in {attrs[1]} memory, which the target lacks")

    def _make(self, name: str, form: _Form, outputs: list[Any]) -> None:
        for made in outputs:
            if not _variable(made) or made in self.made:
                raise Refused(f"{name} makes {quoted(made)}, which is no new variable")
            self.made.add(made)
        letters = "".join(made[0] for made in outputs)
        if not re.fullmatch(form.outputs, letters):
            raise Refused(f"{name} makes {quoted(outputs)}")

    def number(self, value: Any) -> Any:
        """The value that was decided for a variable; any other value as it is."""
        return self.numbers.get(value, value) if isinstance(value, str) else value

    def perfect_tile(self, inputs: Any, attrs: Any, outputs: Any, decision: Any) -> None:
        """Check a decision of tile sizes: one for each level, with a product in bounds."""
        sizes = decision if isinstance(decision, list) else []
        fit = len(sizes) == len(outputs) == attrs[0] and all(is_int(n, 1, INT32) for n in sizes)
        refuse(not fit or math.prod(sizes) > INT32, f"tile sizes {quoted(decision)}")
        self.numbers.update(zip(outputs, sizes, strict=True))

    def categorical(self, inputs: Any, attrs: Any, outputs: Any, decision: Any) -> None:
        """Check a decision for one of the candidates."""
        values, odds = attrs
        fit = len(values) == len(odds) and is_int(decision, 0, len(values) - 1)
        refuse(not fit, f"choice {quoted(decision)} of {len(values)}")
        self.numbers[outputs[0]] = values[decision]

    def location(self, inputs: Any, attrs: Any, outputs: Any, decision: Any) -> None:
        """Check a decision of a loop's position, or -1 or -2 for root and inlined."""
        refuse(not is_int(decision, -2, 100), f"compute location {quoted(decision)}")

    def split(self, inputs: Any, attrs: Any, outputs: Any, decision: Any) -> None:
        """Check the factors of a split, and that it makes one loop for each."""
        factors = [self.number(factor) for factor in inputs[1:]]
        known = [factor for factor in factors if factor != "None"]
        fit = len(outputs) == len(factors) <= len(known) + 1
        fit = fit and all(is_int(factor, 1, INT32) for factor in known)
        refuse(not fit or math.prod(known) > INT32, f"Split by {quoted(factors)}")
        pairs = zip(outputs, factors, strict=True)
        self.extents.update({loop: factor for loop, factor in pairs if factor != "None"})

    def fuse(self, inputs: Any, attrs: Any, outputs: Any, decision: Any) -> None:
        """Note the extent of a fused loop: the product of the extents, where all are known."""
        if all(loop in self.extents for loop in inputs):
            self.extents[outputs[0]] = math.prod(self.extents[loop] for loop in inputs)

    def repeat(self, inputs: Any, attrs: Any, outputs: Any, decision: Any) -> None:
        """Check that unrolling or vectorising makes no more than `MOST_COPIES` of a loop's body."""
        copies = self.extents.get(inputs[0], 1)
        refuse(copies > MOST_COPIES, f"a loop of {copies} is unrolled or one vector")

    def move(self, inputs: Any, attrs: Any, outputs: Any, decision: Any) -> None:
        """Note that parts of a buffer may overlap from step to step from here on."""
        self.moved = True

    def blockize(self, inputs: Any, attrs: Any, outputs: Any, decision: Any) -> None:
        """Check that no block was moved before: TVM takes steps that overlap for disjoint ones."""
        refuse(self.moved, "Blockize after a block was moved")

    def annotate(self, inputs: Any, attrs: Any, outputs: Any, decision: Any) -> None:
        """Check that an annotation's key may have this value, and annotate this kind of thing."""
        subject, check = _keys()[attrs[0]]
        value = self.number(inputs[1])
        plain = value[1:-1] if isinstance(value, str) else value
        fit = inputs[0][0] == subject and check(plain)
        refuse(not fit, f"Annotate {attrs[0]} with {quoted(value)}")


_FORMS = {
    "AddUnitLoop": _Form("[bl]", (), "l"),
    "Annotate": _Form("[bl][ivts]", (_is_key,), further=_Walk.annotate),
    "Bind": _Form("l", (text(r"(blockIdx|threadIdx|vthread)\.[xyz]"),)),
    "Blockize": _Form("[bl]", (flag,), "b", _Walk.blockize),
    "CacheRead": _Form("be", (_position, _scope), "b"),
    "CacheWrite": _Form("be", (_position, _scope), "b"),
    "ComputeAt": _Form("bl", (flag, integer(-2, 64)), "", _Walk.move),
    "ComputeInline": _Form("b"),
    "DecomposeReduction": _Form("bl", (), "b"),
    "EnterPostproc": _Form(""),
    "Fuse": _Form("l+", (flag,), "l", _Walk.fuse),
    "GetChildBlocks": _Form("b", (), "b*"),
    "GetConsumers": _Form("b", (), "b*"),
    "GetLoops": _Form("b", (), "l*"),
    "GetProducers": _Form("b", (), "b*"),
    "GetSBlock": _Form("", (text(r"[A-Za-z_][A-Za-z0-9_]{0,100}"), one_of("main")), "b"),
    "Parallel": _Form("l"),
    "RFactor": _Form("l", (integer(-64, 64),), "b"),
    "Reorder": _Form("l+"),
    "ReverseComputeAt": _Form("bl", (flag, integer(-2, 64)), "", _Walk.move),
    "ReverseComputeInline": _Form("b"),
    "SampleCategorical": _Form("", (_candidates, _odds), "v", _Walk.categorical),
    "SampleComputeLocation": _Form("b", (), "l", _Walk.location),
    "SamplePerfectTile": _Form("l", (integer(1, 16), integer(1, INT32)), "v+", _Walk.perfect_tile),
    "SetScope": _Form("b", (_position, _scope)),
    # The second attribute must be false: it would drop the check that ends the last tile.
    "Split": _Form("l[vin]+", (flag, one_of(False, 0)), "l+", _Walk.split),
    "Tensorize": _Form("[bl]", (_intrinsic, flag)),
    "TransformBlockLayout": _Form("b", (_map,)),
    # The last two attributes: a constant for padding, and no claim that the map is injective.
    "TransformLayout": _Form("bm", (_position, one_of(0, 1), _padding, one_of(False, 0))),
    "Unannotate": _Form("[bl]", (lambda value: value == "schedule_rule" or _is_key(value),)),
    "Unroll": _Form("l", further=_Walk.repeat),
    "Vectorize": _Form("l", further=_Walk.repeat),
}
