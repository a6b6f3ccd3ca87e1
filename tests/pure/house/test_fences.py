"""Every fenced block of the docs is run by a test, or says why it is not."""

import pytest
from helpers.fences import PAGES, ROOT, Block, parts, script


def _name(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_each_block_runs_or_says_why_not(page):
    blocks = [part for part in parts(page) if isinstance(part, Block)]
    assert {block.line: block.fault for block in blocks if block.fault} == {}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_no_fence_is_overlooked(page):
    blocks = [part for part in parts(page) if isinstance(part, Block)]
    lines = page.read_text(encoding="utf-8").splitlines()
    assert 2 * len(blocks) == sum(line.lstrip().startswith("```") for line in lines)


PAGE = """\
<!-- run: touch hidden -->
```sh
test -f hidden
```

<!-- file: notes/a.toml -->
```toml
a = 1
```

1. A step:

   ```python
   x = 1
   ```
   ```text
   shown
   ```
   <!-- not run: it needs a board -->
   ```sh
   exit 1
   ```
```python
assert x == 1
```
```cmake
unmarked()
```
"""


def test_a_page_becomes_a_script(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert [part.fault for part in parts(page)[1:]] == [
        *[""] * 6, "cmake is neither run nor marked"
    ]  # fmt: skip
    said = script(page, "import os")
    assert said.index("touch hidden") < said.index("test -f hidden") < said.index("cat > notes")
    assert "exit 1" not in said
    assert said.endswith("import os\nx = 1\nassert x == 1\nEND_OF_BLOCK\n")
