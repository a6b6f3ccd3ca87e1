"""The contract of a derivation rule: what the search and a build rely on."""

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from .._tvm import Structure, llvm_target, structural_equal, tvm
from ..codegen.kernels.lowering import PIPELINE
from ..runtime.interface import TensorInfo
from ..ship.verify.draws import seeded_inputs
from ..space.block_view import BlockView, blocks
from ..space.derivation import derive
from ..space.question import Chooser, Guess, Random
from ..space.rule import Pass, Rule, before_shipped, load_rule
from ..space.sketch import Program
from ..space.state import State
from ..space.trace import dump
from ..system.environment import shipped
from ..target import Target, load_target

_RESTATED = re.compile(
    r"#|from |@|class |def |T\.func_attr|T\.reads|T\.writes|with T\.sblock\(\"root"
)


class RuleContract(ABC):
    """Tests that every rule passes; a subclass provides the rule's file, and a program for it.

    golden: a file with the rule's drawing, the program's loops before and after; its lines that
    begin with "# " are notes. update: write that file, and do not compare with it.
    """

    golden: Path | None = None
    update = False

    @abstractmethod
    def rule(self) -> Path:
        """The rule's file."""

    @abstractmethod
    def target(self) -> Target:
        """A target of a kind that the rule serves."""

    @abstractmethod
    def program(self) -> tvm.IRModule:
        """A small program with one function, `main`, to which the rule applies."""

    @abstractmethod
    def block(self) -> str:
        """The block of the program at which the rule applies."""

    def outputs(self, mod: tvm.IRModule) -> list[np.ndarray]:
        """The outputs of a program; by default it is run on this machine."""
        return kernel_outputs(mod, effort=0)

    def test_it_loads_and_serves_its_target(self) -> None:
        """The file is complete, and its docstring draws the loops before and after `-->`."""
        rule = self._loaded()
        assert self.target().kind in rule.kinds
        assert rule.summary
        before, arrow, after = rule.doc.partition("\n-->\n")
        assert arrow
        assert "for " in before
        assert re.search(r"for |parallel |blockIdx", after)

    def test_applies_only_looks(self) -> None:
        """`applies` gives the same answer twice at each block, and leaves the program as it was."""
        rule, state, applies = self._loaded(), self._state(Guess()), []
        for view in [BlockView(state.sch, block) for block in blocks(state.sch)]:
            first, second = (rule.applies(state, view.name, self.target()) for _ in range(2))
            assert first == second
            applies += [] if isinstance(first, Pass) else [view.name]
        assert self.block() in applies
        assert structural_equal(state.sch.mod, self.program())
        assert not state.decisions

    def test_the_same_choices_lead_to_the_same_program(self) -> None:
        """A rule uses no clock, random numbers or state: a search derives a program many times."""
        for seed in range(4):
            assert self._trace(seed) == self._trace(seed)

    def test_every_program_computes_what_the_plain_one_does(self) -> None:
        """Outputs agree for the rule's guesses and for other choices, unless these are refused."""
        want, found = self.outputs(self.program()), list(self._programs())
        steps = {step.rule.path for candidate in found for step in candidate.sketch.path}
        assert self.rule() in steps
        unlike = {Structure(candidate.sch.mod["main"]): candidate for candidate in found}
        for candidate in unlike.values():
            for have, plain in zip(self.outputs(candidate.sch.mod), want, strict=True):
                np.testing.assert_allclose(have, plain, 1e-3, 1e-4, err_msg=str(candidate))

    def test_it_draws_what_it_does(self) -> None:
        """The loops before and after equal those of the golden file."""
        if self.golden is None:
            return
        found = f"{drawing(self.program())}\n-->\n{drawing(self._applied(Guess()).sch.mod)}\n"
        if self.update and not self.golden.exists():
            self.golden.touch()
        lines = self.golden.read_text("utf-8").splitlines(keepends=True)
        notes = "".join(line for line in lines if line.startswith("# "))
        if self.update:
            self.golden.write_text(notes + found, "utf-8")
        assert self.golden.read_text("utf-8") == notes + found

    def _loaded(self) -> Rule:
        return load_rule(self.rule())

    def _state(self, chooser: Chooser) -> State:
        return State(tvm.s_tir.Schedule(self.program(), debug_mask="none"), chooser, self.block())

    def _applied(self, chooser: Chooser) -> State:
        """The first state that the rule derives at its block."""
        first, *_ = self._loaded().apply(self._state(chooser), self.block(), self.target())
        return first

    def _trace(self, seed: int) -> str:
        """The trace under random choices of a seed, or the type of the error that refuses them."""
        try:
            return dump(self._applied(Random(random.Random(seed))).sch.trace)
        except (RuntimeError, ValueError) as error:
            return type(error).__name__

    def _programs(self) -> Iterator[Program]:
        """Programs of every sketch that this rule and the shipped ones derive."""
        target = self.target()
        derivation = derive(self.program(), target, before_shipped([self._loaded()], target.kind))
        assert not derivation.faults, derivation.faults
        rng = random.Random(0)
        for sketch in derivation.sketches:
            yield sketch.program(Guess())
            for _ in range(3):
                with suppress(RuntimeError, ValueError):  # choices that the machine cannot have
                    yield sketch.program(Random(rng))


def drawing(mod: tvm.IRModule) -> str:
    """A program's loops, axes and statements, without lines that repeat them."""
    lines = [line for line in mod.script().splitlines() if line.strip()]
    kept = [line for line in lines if not _RESTATED.match(line.strip())]
    return "\n".join(line.removeprefix(" " * 8) for line in kept)


def kernel_outputs(mod: tvm.IRModule, effort: int = 3) -> list[np.ndarray]:
    """Compile `main` for this machine, run it on seeded arguments, and return them afterwards.

    effort: LLVM's optimisation level, 3 as in a library. Level 0 takes a third of the time, and
    suffices to test whether loops are right.
    """
    host = llvm_target(load_target("host", [shipped("targets")]))
    here = tvm.target.Target({**host, "opt-level": effort})
    library = tvm.compile(mod, target=here, tir_pipeline=PIPELINE)
    params = enumerate(mod["main"].params)
    infos = [TensorInfo(str(at), tuple(map(int, p.shape)), str(p.dtype)) for at, p in params]
    tensors = [tvm.runtime.tensor(one) for one in seeded_inputs(infos, 0, upper=5).values()]
    library["main"](*tensors)
    return [tensor.numpy() for tensor in tensors]
