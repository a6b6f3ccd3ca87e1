"""A program while it is derived.

Every free choice is a question to the state's chooser. Every answer is also a sampling instruction
in the schedule's trace, so that a record shows the decisions behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .._tvm import tvm
from . import rewriting
from .block_view import BlockView
from .question import Chooser, Decision, Question
from .tiles import Tiles

T = TypeVar("T")


@dataclass
class State:
    """A schedule under derivation.

    node: the block being visited. done: blocks that need no further rule nor annotation.
    revisit: the rules are asked again about the block that was just changed. origin: the task's own
    program. restarted: the program was rewritten, so that all its blocks are visited again.
    """

    sch: Any
    chooser: Chooser
    node: str = ""
    decisions: list[Decision] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    revisit: bool = False
    origin: Any = None
    restarted: bool = False

    def __post_init__(self) -> None:
        if self.origin is None:
            self.origin = self.sch.mod

    @property
    def is_rewritten(self) -> bool:
        """Whether its program is a rewriting of the task's own."""
        return bool(rewriting.rewritings(self.sch.mod["main"]))

    def rewritten(self, name: str, block: str, sizes: Sequence[int], guess: int = 0) -> State:
        """A new state: the task's own program with a block replaced by an equal computation.

        Earlier changes of the schedule are dropped. name: the name of a rewriting (`rewriting.py`).
        sizes: the sizes to choose from. guess: the index of the size that the rule thinks best.
        ValueError where the rewriting does not take the block, or the state is rewritten already.
        """
        if self.is_rewritten:
            raise ValueError("a program is rewritten once")
        question = Question("size", block, tuple(sizes), guess)
        made = Decision(question, self.chooser.answer(question))
        step = f"{name} {block} {made.option}"
        sch = tvm.s_tir.Schedule(rewriting.rewritten(self.origin, step), debug_mask="none")
        rewriting.mark(sch, step)
        new = State(sch, self.chooser, origin=self.origin, restarted=True)
        new.note(made)
        return new

    def again(self) -> State:
        """This state; its block will be visited once more."""
        self.revisit = True
        return self

    def copy(self) -> State:
        """An independent copy; its questions get the answers that this state's would get."""
        decisions, done = list(self.decisions), set(self.done)
        words = (self.sch.copy(), self.chooser.fork(), self.node, decisions, done)
        return State(*words, origin=self.origin)

    def block(self, name: str) -> Any:
        """The block's random variable in the schedule."""
        return self.sch.get_sblock(name)

    def view(self, name: str) -> BlockView:
        """A view of a block, with the questions that a rule may ask about it."""
        return BlockView(self.sch, self.block(name))

    def finish(self, *blocks: Any) -> None:
        """Mark blocks, given by their random variables, as in need of no rule and no annotation."""
        self.done |= {str(self.sch.get(block).name_hint) for block in blocks}

    def choose(
        self, about: str, options: Sequence[T], guess: int = 0, *, ordered: bool = False
    ) -> T:
        """Choose one of the options. about: what they decide, for mutations and for learning.

        guess: the index of the option that the rule thinks best. ordered: whether the options are
        in order. Records know an option by its index, so add new options at the end.
        """
        question = Question(about, self.node, tuple(options), guess, ordered)
        made = Decision(question, self.chooser.answer(question))
        self.note(made)
        return options[made.index]

    def note(self, made: Decision) -> None:
        """Record the answer to a question, here and in the trace."""
        size = made.question.size
        self.sch.sample_categorical(list(range(size)), [1.0 / size] * size, made.index)
        self.decisions.append(made)

    def sample_tile(
        self, loop: Any, parts: int, limit: int = 64, guess: Sequence[int] | None = None
    ) -> list[Any]:
        """Split a loop into `parts` loops, outermost first.

        limit: the most iterations of the last one. guess: the extents that the rule thinks best; by
        default all iterations are in the first.
        """
        extent = int(self.sch.get(loop).extent)
        tiles = Tiles(extent, parts, limit)
        guessed = tiles.index(guess or [extent, *[1] * (parts - 1)])
        question = Question("tile", self.node, tiles, guessed)
        made = Decision(question, self.chooser.answer(question))
        self.decisions.append(made)
        factors = made.option
        sampled = self.sch.sample_perfect_tile(loop, parts, max(limit, factors[-1]), factors)
        return list(self.sch.split(loop, sampled))
