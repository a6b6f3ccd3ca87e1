"""JSON Schemas of manifests and of what commands print with `--json`, made from their types.

No command imports this file, as it imports the answers of all commands.
"""

from inspect import cleandoc
from typing import Any

from msgspec.json import schema_components

from ..doctor.host import Checks
from ..farm.table import Jobs
from ..registry.coverage import Best
from ..registry.difference import Diff
from ..registry.history import History
from ..registry.listing import Query, Stats
from ..registry.restore import Whole
from ..registry.trends import Trends
from ..ship import manifest, quantised
from ..ship.build_result import BuildAnswer
from ..ship.race.changes import Compare
from ..ship.race.profile_answer import Profile, ProfileVariants
from ..space.explanation import Explain
from ..system.json_types import OR_NULL
from ..tune.result import PackAnswer, Tune
from ..views.page.content import Report
from ..views.plain import Message
from . import (
    backup,
    bench,
    completion,
    devices,
    exchange,
    forget,
    history,
    init,
    lock,
    lookups,
    package,
    plan,
    rates,
    registry,
    revalidate,
    rules,
    run,
    targets,
    verify,
)

# In these, fields that have their default are left out.
_SHORT = (manifest.Manifest.__name__, manifest.Tensor.__name__)
DIALECT = "https://json-schema.org/draft/2020-12/schema"
# For each schema: its title in Markdown, and the types of which a document has one.
DESCRIBED: dict[str, tuple[str, tuple[Any, ...]]] = {
    "manifest": ("the manifest, `NAME.json` beside `NAME.so`", (manifest.Manifest,)),
    "quantised": (
        "`NAME.int8.json`, beside a library whose model the build has quantised",
        (quantised.Quantised,),
    ),
    "message": ("a line on stderr with `--message-format json`", (Message,)),
    "build": ("`build --json`", (BuildAnswer,)),
    "plan": ("`plan --json`", (plan.Plan,)),
    "tune": ("`tune --json`", (Tune, PackAnswer, Jobs)),
    "bench": ("`bench --json`", (bench.Bench, bench.BenchVariants, rates.Rated)),
    "profile": ("`profile --json`", (Profile, ProfileVariants)),
    "compare": ("`compare --json`", (Compare,)),
    "history": ("`history --json`", (history.History,)),
    "verify": ("`verify --json`", (Checks, verify.Compared, verify.Rebuilt)),
    "report": ("`report --json`", (Report,)),
    "run": ("`run --json`", (run.Run,)),
    "package": ("`package --json`", (package.Package,)),
    "init": ("`init --json`", (init.Started,)),
    "lock": ("`lock select --json`, `lock tasks --json`", (lock.Written,)),
    "doctor": (
        "`doctor --json`, `devices add --json`, `devices doctor --json`",
        (Checks,),
    ),
    "devices-list": ("`devices list --json`", (devices.Devices,)),
    "device": (
        "`devices accept`, `install`, `remove` and `trust --json`",
        (devices.Device,),
    ),
    "registry-backup": ("`registry backup --json` and `registry restore --json`", (backup.Copied,)),
    "rules-list": ("`rules list --json`", (rules.Rules,)),
    "rules-new": ("`rules new --json`", (rules.New,)),
    "rules-explain": ("`rules explain --json`", (Explain,)),
    "completion": ("`completion --json`", (completion.Completion,)),
    "targets-list": ("`targets list --json`", (targets.Targets,)),
    "targets-show": ("`targets show --json`", (manifest.Target,)),
    "registry-query": ("`registry query --json`", (Query,)),
    "registry-stats": ("`registry stats --json`", (Stats,)),
    "registry-trends": ("`registry trends --json`", (Trends,)),
    "registry-best": ("`registry best --json`", (Best,)),
    "registry-diff": ("`registry diff --json`", (Diff,)),
    "registry-show": ("`registry show --json`", (History, lookups.Script)),
    "registry-revalidate": ("`registry revalidate --json`", (revalidate.Retrials,)),
    "registry-verify": ("`registry verify --json`", (Whole,)),
    "registry-forget": ("`registry forget --json`", (forget.Forgotten,)),
    "registry-gc": ("`registry gc --json`", (registry.Dropped,)),
    "registry-vacuum": ("`registry vacuum --json`", (registry.Vacuumed,)),
    "registry-given": ("`registry export --json`, `registry push --json`", (exchange.Given,)),
    "registry-taken": (
        "`registry import --json`, `registry pull --json`",
        (exchange.Pulled, exchange.Taken),
    ),
    "registry-withdrawn": ("`registry withdraw --json`", (exchange.Withdrawn,)),
}


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a name in `DESCRIBED`.

    Objects are open: readers should ignore fields that they do not know.
    """
    title, types = DESCRIBED[name]
    shapes, parts = schema_components(
        types, schema_hook=lambda kind: {"type": "string"}, ref_template="#/$defs/{name}"
    )
    whole = shapes[0] if len(shapes) == 1 else {"anyOf": list(shapes)}
    for kind, part in parts.items():
        part["description"] = cleandoc(part["description"])
        if kind not in _SHORT:
            _as_printed(part)
    return {"$schema": DIALECT, "title": title.replace("`", ""), **whole, "$defs": parts}


def _as_printed(part: dict[str, Any]) -> None:
    """State that an object's fields are printed even where they have their default."""
    for name, field in part.get("properties", {}).items():
        if field.pop("default", part) is not part:
            part["required"].append(name)
        if field.pop(OR_NULL, False):
            field["type"] = [field["type"], "null"]
