"""A built library on a board, which is called and timed like a `runtime.Model` here."""

import hashlib
import json
import tempfile
from collections.abc import Sequence
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
from .arrivals import Served
from .library_calls import by_name, bytes_of
from .room import check_room
from .site import Site

RUN_SECONDS = 600.0  # the limit for the runs of one call
_CALLS = "ansor_deploy.devices.library_calls"
Arrays = dict[str, np.ndarray]


class RemoteModel:
    """A library that was sent to a site. Its inputs stay there as long as they do not change.

    AnsorError where the library fails there, DeviceLost where the site fails, DeviceError where the
    library does not fit there.
    """

    def __init__(self, site: Site, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self.interfaces = interfaces(manifest)
        self.batches = ranges(manifest, declared(manifest))
        self.inputs, self.outputs = self.interfaces[0].inputs, self.interfaces[0].outputs
        self._site = site
        # A board runs the best code: it needs no entries of other codes.
        sent = {**of_calls(manifest), "codes": None}
        self._manifest = json.dumps(sent)
        check_room(site, path, manifest)
        self._place = site.put(path)
        self._sent: dict[str, str] = {}  # where inputs lie, by their digests

    def __call__(self, /, **inputs: np.ndarray) -> Arrays:
        """Run once, in the inputs' shapes; UsageError where it does not take these."""
        place = self._site.scratch("outputs")
        self._call("run", inputs, outputs=place)
        outputs = self._fitting(inputs).outputs
        data = self._site.get(place, bytes_of(outputs))
        self._site.drop(place)
        return of_true_size(outputs, by_name(outputs, data))

    def times(self, inputs: Arrays, runs: int) -> list[float]:
        """Seconds of each of `runs` runs, one after the other, by the site's clock."""
        seconds: list[float] = []
        while len(seconds) < runs:  # in parts, so that each answer fits a frame
            part = min(MOST_ITEMS, runs - len(seconds))
            seconds += self._call("times", inputs, runs=part)
        if wrong := impossible(seconds):
            raise DeviceLost(f"{self._site.name}: {wrong}", "look at its clock")
        return seconds

    def profile(self, inputs: Arrays, seconds: float) -> Profile:
        """The times of its kernels in place, by the site's clock."""
        figures: dict[str, Any] = self._call("profile", inputs, seconds=seconds)
        if wrong := impossible([figures["seconds"]]):
            raise DeviceLost(f"{self._site.name}: {wrong}", "look at its clock")
        return described(figures, self.manifest)

    def serve(self, feeds: Sequence[Arrays], rate: float, seconds: float) -> Served:
        """The site's figures of requests at a rate; the requests take turns in the feeds."""
        words = {"feeds": self._given(*feeds), "rate": rate, "seconds": seconds}
        served = Served(**self._ask("serve", words, seconds + RUN_SECONDS))
        if wrong := impossible(served.running):
            raise DeviceLost(f"{self._site.name}: {wrong}", "look at its clock")
        return served

    def close(self) -> None:
        """Remove its files from the site."""
        for place in (self._place, *self._sent.values()):
            self._site.drop(place)

    def _call(self, function: str, inputs: Arrays, **words: Any) -> Any:
        (given,) = self._given(inputs)
        return self._ask(function, {**given, **words}, RUN_SECONDS)

    def _ask(self, function: str, words: dict[str, Any], limit: float) -> Any:
        payload = {"path": self._place, "manifest": self._manifest, **words}
        try:
            return self._site.call(f"{_CALLS}:{function}", payload, limit)
        except WorkerFailure as failure:
            if failure.message.startswith(f"{UsageError.__name__}: "):
                raise UsageError(failure.message, "see what the library takes") from failure
            what = f"{self.path} does not run on {self._site.name}: {failure.message}"
            hint = "was it built for that device's target? see `target` in its manifest"
            raise AnsorError(what, hint) from failure

    def _fitting(self, inputs: Arrays) -> Interface:
        return fitting(self.path, self.interfaces, inputs, self.batches)

    def _given(self, *feeds: Arrays) -> list[dict[str, str]]:
        """The payload for each of these inputs, which are sent if needed; others are removed."""
        shapes = [self._fitting(inputs) for inputs in feeds]
        data = [
            to_bytes([inputs[info.name] for info in one.inputs])
            for one, inputs in zip(shapes, feeds, strict=True)
        ]
        digests = [hashlib.sha256(one).hexdigest() for one in data]
        for digest in self._sent.keys() - {*digests}:
            self._site.drop(self._sent.pop(digest))
        for digest, one in zip(digests, data, strict=True):
            if digest not in self._sent:
                self._sent[digest] = self._put(one)
        return [
            {"interface": json.dumps(one.to_json()), "inputs": self._sent[digest]}
            for one, digest in zip(shapes, digests, strict=True)
        ]

    def _put(self, data: bytes) -> str:
        with tempfile.TemporaryDirectory(prefix="ansor-deploy-") as folder:
            path = Path(folder, "inputs")
            path.write_bytes(data)
            return self._site.put(path)


def load(site: Site, path: Path) -> RemoteModel:
    """Send a library with the manifest beside it; AnsorError if either is missing or damaged."""
    return RemoteModel(site, path, read_json(path))
