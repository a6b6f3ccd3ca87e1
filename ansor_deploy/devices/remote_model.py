"""A built library on a board, which is called and timed as `runtime.Model` is here."""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import AnsorError, DeviceLost, UsageError
from ..runtime.fit import fitting
from ..runtime.interface import Interface, declared, interfaces, of_calls, of_true_size, ranges
from ..runtime.manifest_json import read_json
from ..runtime.profile import Profile, described
from ..runtime.tensors import to_bytes
from ..system.run_times import impossible
from ..system.worker import WorkerFailure
from .answers import MOST_ITEMS
from .library_calls import by_name, bytes_of
from .room import check_room
from .site import Site

RUN_SECONDS = 600.0  # for the runs of one call
_CALLS = "ansor_deploy.devices.library_calls"


class RemoteModel:
    """A library that was sent to a site. Its inputs stay there for as long as they are the same.

    AnsorError where the library fails there, DeviceLost where the site does. DeviceError where the
    library does not fit there.
    """

    def __init__(self, site: Site, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self.interfaces = interfaces(manifest)
        self.batches = ranges(manifest, declared(manifest))
        self.inputs, self.outputs = self.interfaces[0].inputs, self.interfaces[0].outputs
        self._site = site
        # Code for several targets is not asked for there.
        sent = {**of_calls(manifest), "codes": None}
        self._manifest = json.dumps(sent)
        check_room(site, path, manifest)
        self._place = site.put(path)
        self._sent = ("", "")  # digest of the inputs, and where they lie

    def __call__(self, /, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Run once, in the shapes that the inputs have; UsageError where it has none such."""
        place = self._site.scratch("outputs")
        self._call("run", inputs, outputs=place)
        outputs = self._fitting(inputs).outputs
        data = self._site.get(place, bytes_of(outputs))
        self._site.drop(place)
        return of_true_size(outputs, by_name(outputs, data))

    def times(self, inputs: dict[str, np.ndarray], runs: int) -> list[float]:
        """Seconds of each of so many runs, one after the other, by the site's clock."""
        seconds: list[float] = []
        while len(seconds) < runs:  # in parts, each of which is an answer that a frame holds
            part = min(MOST_ITEMS, runs - len(seconds))
            seconds += self._call("times", inputs, runs=part)
        if wrong := impossible(seconds):
            raise DeviceLost(f"{self._site.name}: {wrong}", "look at its clock")
        return seconds

    def profile(self, inputs: dict[str, np.ndarray], seconds: float) -> Profile:
        """The times of its kernels in place, by the site's clock."""
        figures: dict[str, Any] = self._call("profile", inputs, seconds=seconds)
        if wrong := impossible([figures["seconds"]]):
            raise DeviceLost(f"{self._site.name}: {wrong}", "look at its clock")
        return described(figures, self.manifest)

    def close(self) -> None:
        """Remove its files from the site."""
        for place in (self._place, self._sent[1]):
            if place:
                self._site.drop(place)

    def _call(self, function: str, inputs: dict[str, np.ndarray], **words: Any) -> Any:
        one = self._fitting(inputs)
        payload = {
            "path": self._place,
            "manifest": self._manifest,
            "interface": json.dumps(one.to_json()),
            "inputs": self._send(to_bytes([inputs[info.name] for info in one.inputs])),
        }
        try:
            return self._site.call(f"{_CALLS}:{function}", {**payload, **words}, RUN_SECONDS)
        except WorkerFailure as failure:
            if failure.message.startswith(f"{UsageError.__name__}: "):
                raise UsageError(failure.message, "see what the library takes") from failure
            what = f"{self.path} does not run on {self._site.name}: {failure.message}"
            hint = "was it built for that device's target? see `target` in its manifest"
            raise AnsorError(what, hint) from failure

    def _fitting(self, inputs: dict[str, np.ndarray]) -> Interface:
        return fitting(self.path, self.interfaces, inputs, self.batches)

    def _send(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        if digest != self._sent[0]:
            if self._sent[1]:
                self._site.drop(self._sent[1])
            with tempfile.TemporaryDirectory(prefix="ansor-deploy-") as folder:
                path = Path(folder, "inputs")
                path.write_bytes(data)
                self._sent = (digest, self._site.put(path))
        return self._sent[1]


def load(site: Site, path: Path) -> RemoteModel:
    """Send a library with the manifest beside it; AnsorError if either is missing or damaged."""
    return RemoteModel(site, path, read_json(path))
