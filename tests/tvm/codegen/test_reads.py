"""What a value reads is found once, at its fewest conditions."""

from typing import Any

from ansor_deploy._tvm import structural_equal, tirx
from ansor_deploy.codegen.lengths.asked import Known, Read, reads

X, Y = (tirx.decl_buffer((8,), "float32", name) for name in "xy")
AT = tirx.Var("at", "int64")


def loaded(buffer: Any) -> Any:
    return tirx.BufferLoad(buffer, [AT])


def found(value: Any) -> list[Read]:
    return list(reads(value, Known(), {}))


def test_what_is_chosen_again_and_again_is_read_once():
    """As a number that is floored seven times: its branches are thousands."""
    value = loaded(X)
    for _ in range(7):
        value = tirx.Select(value < 0.0, value * 0.5 - 1.0, value * 0.5)
    (read,) = found(value)
    assert read.load.source.same_as(X)
    assert read.conditions == ()


def test_what_only_a_branch_reads_has_its_conditions():
    asked = loaded(X) < 0.0
    inner = tirx.Select(AT < 4, loaded(Y), loaded(X))
    always, sometimes = found(tirx.Select(asked, inner, loaded(X) + loaded(Y)))[:2]
    assert (always.load.source.name, always.conditions) == ("x", ())
    assert sometimes.load.source.name == "y"
    assert len(sometimes.conditions) == 2
    assert structural_equal(sometimes.conditions[0], asked)


def test_each_of_two_branches_needs_what_both_read():
    read = found(tirx.Select(AT < 4, loaded(Y), loaded(Y) * 2.0))
    assert [len(one.conditions) for one in read] == [1, 1]
