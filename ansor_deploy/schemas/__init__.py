"""JSON Schemas of what commands print with `--json`, and of manifests, from types."""

from typing import Any

from msgspec.json import schema_components

from ..ship import manifest
from . import commands, others, registry

_TAKEN = (registry.Pulled, registry.Taken)
DIALECT = "https://json-schema.org/draft/2020-12/schema"
# What is described, in Markdown, and the types of which it is one.
DESCRIBED: dict[str, tuple[str, tuple[Any, ...]]] = {
    "manifest": ("the manifest, `NAME.json` beside `NAME.so`", (manifest.Manifest,)),
    "message": ("a line on stderr with `--message-format json`", (commands.Message,)),
    "build": ("`build --json`", (commands.Build,)),
    "plan": ("`plan --json`", (commands.Plan,)),
    "tune": ("`tune --json`", (commands.Tune, others.Packed, others.Jobs)),
    "bench": ("`bench --json`", (commands.Bench, commands.BenchVariants)),
    "profile": ("`profile --json`", (commands.Profile, commands.ProfileVariants)),
    "compare": ("`compare --json`", (commands.Compare,)),
    "history": ("`history --json`", (registry.History,)),
    "verify": ("`verify --json`", (commands.Checks, commands.Compared, commands.Rebuilt)),
    "report": ("`report --json`", (commands.Report,)),
    "run": ("`run --json`", (commands.Run,)),
    "package": ("`package --json`", (commands.Package,)),
    "doctor": ("`doctor --json`, `devices doctor --json`", (commands.Checks,)),
    "devices-list": ("`devices list --json`", (others.Devices,)),
    "rules-list": ("`rules list --json`", (others.Rules,)),
    "rules-explain": ("`rules explain --json`", (others.Explain,)),
    "completion": ("`completion --json`", (others.Completion,)),
    "targets-list": ("`targets list --json`", (commands.Targets,)),
    "targets-show": ("`targets show --json`", (manifest.Target,)),
    "registry-query": ("`registry query --json`", (registry.Query,)),
    "registry-stats": ("`registry stats --json`", (registry.Stats,)),
    "registry-best": ("`registry best --json`", (registry.Best,)),
    "registry-show": ("`registry show --json`", (registry.Show, others.Script)),
    "registry-revalidate": ("`registry revalidate --json`", (others.Retrials,)),
    "registry-verify": ("`registry verify --json`", (registry.Whole,)),
    "registry-gc": ("`registry gc --json`", (registry.Dropped,)),
    "registry-vacuum": ("`registry vacuum --json`", (registry.Vacuumed,)),
    "registry-given": ("`registry export --json`, `registry push --json`", (registry.Given,)),
    "registry-taken": ("`registry import --json`, `registry pull --json`", _TAKEN),
}


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of what has this name in `DESCRIBED`.

    Objects are open: readers are asked to pass over fields that they do not know.
    """
    title, types = DESCRIBED[name]
    shapes, parts = schema_components(types, ref_template="#/$defs/{name}")
    whole = shapes[0] if len(shapes) == 1 else {"anyOf": list(shapes)}
    return {"$schema": DIALECT, "title": title.replace("`", ""), **whole, "$defs": parts}
