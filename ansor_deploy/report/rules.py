"""A task's sketches, and what each rule answered, as lines of at most 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .text import shape_text, wrapped

if TYPE_CHECKING:
    from ..space.explain import Explanation, SketchSummary


def explanation_lines(found: Explanation, total: int) -> list[str]:
    """One task: what it is, its sketches, and at each block what every rule answered."""
    shapes = " ".join(map(shape_text, found.shapes))
    title = f"task {found.index} of {total}: {found.name} ({found.op}), x{found.weight}"
    lines = [*wrapped(title, "", "  "), *wrapped(shapes, "  ", "  ")]
    lines += [line for fault in found.faults for line in wrapped(fault, "  warning: ", "    ")]
    lines.append("  sketches, the default first:" if found.sketches else "  no sketch")
    for number, sketch in enumerate(found.sketches, start=1):
        lines += wrapped(_sketch(sketch), f"  {number:>4}  ", " " * 8)
    lines += [line for misfit in found.misfits for line in wrapped(misfit, "     -  ", " " * 8)]
    for block in found.blocks:
        reduces = f", reduces {shape_text(block.reduced)}" if block.reduced else ""
        lines.append(f"  block {block.block} ({shape_text(block.spatial)}{reduces}):")
        lines += _answers(block.verdicts)
    return lines


def _sketch(sketch: SketchSummary) -> str:
    steps = ", ".join(f"{step['rule']} at {step['block']}" for step in sketch.steps)
    steps = steps or "as it stands"
    if sketch.error:
        return f"{steps}; its default program fails: {sketch.error}"
    return f"{steps}; free choices: {len(sketch.choices)}"


def _answers(answers: Sequence[dict[str, str]]) -> list[str]:
    if not answers:
        return ["    (not asked: it was finished or gone before its turn)"]
    width = max(len(answer["rule"]) for answer in answers)
    texts = [(answer["text"], f"    {answer['rule'].ljust(width)}  ") for answer in answers]
    return [line for text, first in texts for line in wrapped(text, first, " " * len(first))]
