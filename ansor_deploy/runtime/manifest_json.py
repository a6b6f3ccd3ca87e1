"""The manifest beside a library as plain JSON, which is enough to load and run the library."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import AnsorError, UsageError
from ..system.regular_file import read_regular

_MOST_BYTES = 64 << 20  # of a manifest


def manifest_path(artifact: Path) -> Path:
    """The path of a library's manifest: the same name with .json."""
    return artifact.with_suffix(".json")


def read_json(artifact: Path) -> dict[str, Any]:
    """The manifest of a library, as JSON; AnsorError if it is missing, or invalid, or not its own.

    The fields that running the library needs are there, and have the right types.
    """
    path = manifest_path(artifact)
    if artifact.suffix == ".onnx":
        build = f"build it first: ansor-deploy build {artifact}"
        raise UsageError("this is a model, not a library", build, artifact)
    rebuild = _rebuild(artifact)
    try:
        content = read_regular(path, _MOST_BYTES)
        manifest: dict[str, Any] = json.loads(content or b"{}")
    except FileNotFoundError as error:
        if not artifact.exists():
            raise AnsorError("there is no such library", "check the path", artifact) from error
        hint = f"copy it along with the library, or {rebuild}"
        raise AnsorError(f"the manifest of {artifact.name} is missing", hint, path) from error
    except (OSError, ValueError, RecursionError) as error:
        raise no_manifest(artifact, str(error)) from error
    if not content:
        hint = f"a shell empties what `> {path.name}` names before the command starts; {rebuild}"
        raise AnsorError("it is empty, and no manifest", hint, path)
    if wrong := _fault(manifest):
        raise no_manifest(artifact, wrong)
    expected = manifest["artifact"]["bytes"]
    try:
        size = artifact.stat().st_size
    except OSError as error:
        raise AnsorError(str(error.strerror), rebuild, artifact) from error
    if size != expected:
        raise AnsorError(f"{size} bytes where its manifest says {expected}", rebuild, artifact)
    return manifest


def threads_of(manifest: Mapping[str, Any]) -> int:
    """The default number of threads of a call: that of the preset, else one a core."""
    preset = manifest.get("preset")
    return int(preset["threads"] if preset else manifest["target"]["cores"])


def no_manifest(artifact: Path, wrong: str) -> AnsorError:
    """The error of a file that is not a manifest but has its path. wrong: the fault."""
    return AnsorError(f"not a manifest: {wrong}", _rebuild(artifact), manifest_path(artifact))


def _rebuild(artifact: Path) -> str:
    return f"build it again: ansor-deploy build MODEL -o {artifact}"


def _fault(manifest: Any) -> str:
    """What is wrong with the fields that running a library reads; "" if nothing is."""
    try:
        kinds = [
            (manifest["artifact"]["bytes"], int),
            (manifest["target"]["triple"], str),
            (manifest["target"]["cores"], int),
        ]
        if preset := manifest.get("preset"):
            kinds += [(preset[name], int) for name in ("threads", "streams")]
        if batch := manifest.get("batch"):
            kinds += [(batch[name], int) for name in ("least", "most", "part")]
            kinds += [(name, str) for name in (batch["inputs"][0], *batch["inputs"])]
        for one in manifest.get("ranges") or ():
            kinds += [(one[name], int) for name in ("least", "most", "step")]
            kinds += [(one["length"], str)]
            for place in (one["places"][0], *one["places"]):
                kinds += [(place[0], str), (place[1], int)]
            kinds += [(by, int) for by in one.get("times") or ()]
        for one in manifest.get("variants") or [manifest]:
            for tensor in (*one["inputs"], *one["outputs"]):
                kinds += [(tensor["name"], str), (tensor["dtype"], str)]
                kinds += [(extent, int) for extent in tensor["shape"]]
    except (LookupError, TypeError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    wrong = [value for value, kind in kinds if not isinstance(value, kind)]
    return f"{wrong[0]!r} where another type is expected" if wrong else ""
