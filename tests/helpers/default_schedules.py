"""Default schedules that the compiler refuses: a build falls back and warns, a test fails."""

from contextlib import contextmanager

import pytest

from ansor_deploy.codegen import model

_DEFAULT = "the default schedule"


@contextmanager
def refused_ones():
    """A list that grows by a line for each workload that loses its default schedule meanwhile."""
    lines: list[str] = []
    simplify = model._Choices.simplify

    def noting(choices, refused):
        before = {key: name for key, (name, _) in choices._chosen.items()}
        for keys, one in refused.items():
            lines.extend(f"{key}: {one.reason}" for key in keys if before[key] == _DEFAULT)
        simplify(choices, refused)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model._Choices, "simplify", noting)
        yield lines
