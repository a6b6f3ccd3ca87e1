"""What is seen of kernels while a library is made."""

import pytest

from ansor_deploy._tvm import collect, tvm
from ansor_deploy.codegen.lengths import whole


@pytest.fixture
def kernels(monkeypatch):
    """The names of the kernels that a model with lengths calls, and the buffers that they make."""
    names, buffers, cut = [], [], whole.cut

    class Noted(whole._Main):
        def rewritten(self):
            made = super().rewritten()
            names.extend(one.name_hint for one in collect(made.body, tvm.ir.GlobalVar))
            return made

    def noted_body(*given):
        body = cut(*given)
        blocks = collect(body, tvm.s_tir.SBlock) if body is not None else ()
        buffers.append({one.name for block in blocks for one in block.alloc_buffers})
        return body

    monkeypatch.setattr(whole, "_Main", Noted)
    monkeypatch.setattr(whole, "cut", noted_body)
    return names, buffers
