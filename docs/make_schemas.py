"""Write schemas/, a JSON Schema for each answer of `--json`, and json.md, which lists them.

With --check, say which of these files are stale. The types are those of `ansor_deploy.cli.schemas`.
"""

import json
import sys
from pathlib import Path

from ansor_deploy.cli.schemas import DESCRIBED, schema

HERE = Path(__file__).parent
PAGE = """\
# JSON

With `--json` a command prints one object on stdout. Messages and progress go to stderr. A
[JSON Schema](https://json-schema.org/draft/2020-12) (draft 2020-12) describes each object, and the
[manifest](manifest.md). `python docs/make_schemas.py` makes the schemas from the types of
`ansor_deploy.cli.schemas`, and tests check that commands print what the schemas say.

Later versions may add fields, so a reader should ignore those that it does not know. A number that
JSON cannot represent, such as an unknown latency, is null. A command that fails prints
`{"error": {...}}` instead, with its message and its [exit code](exit_codes.md).

| what | schema |
|---|---|
"""


def files() -> dict[Path, str]:
    """What each file says."""
    rows = [
        f"| {title} | [{name}.json](schemas/{name}.json) |"
        for name, (title, _) in DESCRIBED.items()
    ]
    made = {
        HERE / "schemas" / f"{name}.json": json.dumps(schema(name), indent=1) + "\n"
        for name in DESCRIBED
    }
    return {HERE / "json.md": PAGE + "\n".join(rows) + "\n", **made}


def main() -> int:
    """Write them, or, with --check, print those that are not what they should be; the exit code."""
    made, check = files(), "--check" in sys.argv[1:]
    known = set((HERE / "schemas").glob("*.json")) - made.keys()
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    for path in [*stale, *known]:
        if check:
            sys.stderr.write(f"{path}: stale; run: python docs/make_schemas.py\n")
        elif path in made:
            path.write_text(made[path])
        else:
            path.unlink()
    return bool(check and [*stale, *known])


if __name__ == "__main__":
    (HERE / "schemas").mkdir(exist_ok=True)
    sys.exit(main())
