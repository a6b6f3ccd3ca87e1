"""Images whose pixels lie without gaps, where a run decides how many there are."""

import pytest

from ansor_deploy._tvm import collect, relax, substituted, sym, tirx
from ansor_deploy.codegen.lengths.bound import Bound
from ansor_deploy.codegen.lengths.images import Image
from ansor_deploy.codegen.lengths.places import Places

HEIGHT, WIDTH = 64, 48


@pytest.mark.parametrize(("column", "slot"), [(5, 3 * 7 + 5), (7, HEIGHT * WIDTH - 1)])
def test_a_pixel_is_stored_at_its_number_among_those_that_count(column, slot):
    """No index has a quotient: of a tile of pixels, these would take the compiler minutes."""
    columns, i, j, n = relax.Var("columns", relax.ObjectType()), *map(number, "ijn")
    image = Image(1, Places(HEIGHT, WIDTH, None, Bound.of(columns)))
    first, line, place, last = image.moved([0, i, j, 2], {columns: (0, n)}, stored=True)
    found = substituted(place, [(i, number(3)), (j, number(column)), (n, number(7))])
    assert (first, int(line), int(sym.Analyzer().simplify(found)), last) == (0, 0, slot, 2)
    assert not collect(place, tirx.FloorDiv, tirx.FloorMod)


def number(value):
    return tirx.Var(value, "int64") if isinstance(value, str) else tirx.const(value, "int64")
