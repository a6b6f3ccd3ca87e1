"""A convolution, untuned beside tuned."""

import json

from click.testing import CliRunner

from ansor_deploy.registry.store import Registry
from benchmarks.networks import zoo
from benchmarks.networks.onnx_net import Net
from benchmarks.search import searching, untuned


def network():
    net = Net("small", seed=0)
    x = net.conv(net.input("data", (1, 16, 6, 6)), 32, (1, 1))
    return net.model(x, "out", (1, 32, 6, 6))


def test_what_was_measured_is_kept_and_not_measured_again(monkeypatch, tmp_path):
    monkeypatch.setattr(zoo, "NETWORKS", {"small": network})
    file, path = tmp_path / "found.json", tmp_path / "registry.db"
    words = ["small", "--tasks", "1", "--trials", "3", "--registry", path, "--json", file]
    ended = CliRunner().invoke(untuned.command, list(map(str, words)))
    assert ended.exit_code == 0, ended.output
    (row,) = json.loads(file.read_text())
    assert (row["op"], row["trials"]) == ("conv2d", 3)
    assert row["untuned_us"] >= row["tuned_us"] > 0
    assert "all: 1 tasks, untuned over tuned" in ended.stdout
    target = searching.host(1)
    task, *_ = untuned._contractions("small", target)
    with Registry.open(path) as registry:
        untuned._search(task, target, registry, None, 3)  # nothing is measured again
        kept = list(registry.measurements(target.fingerprint, task.key))
    assert len(kept) == 3
    assert all(one.features for one in kept)
