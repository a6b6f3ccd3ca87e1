"""Make the base: records of networks for shipped targets, as the bundle that builds read first.

The networks are tuned for each target, in two thirds of its share of the minutes. The best
schedules then run in turns with the default ones, like claims of others, several times, each time
in a new registry; a schedule that does not win every time is left out. So the machine may be busy
during tuning: that leads to fewer records, but to none that is worse than the default schedule. The
ends of searches are left out, too: users' builds may find better schedules.

The bundle is named after its content, which is checked whenever it is read. If it is signed,
`ssh-keygen -Y verify -n ansor-deploy` says by whom; builds trust the bundle in the wheel.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import click
import onnx

from ansor_deploy import api
from ansor_deploy.registry.bundle import Bundle, closed
from ansor_deploy.registry.record import Record
from ansor_deploy.registry.remote import SIGNATURE, name_of
from ansor_deploy.registry.signing import Signer, load_signer
from ansor_deploy.registry.stamp import Stamp
from ansor_deploy.registry.store import Registry
from ansor_deploy.registry.transfer import contents, take_in
from benchmarks.networks.zoo import network
from benchmarks.options import Listed, number, progress

TARGETS = ("x86-64-v3", "x86-64-v4", "x86-64-v4-vnni")
NETWORKS = ("resnet50", "mobilenet_v2", "resnet3d18", "dcgan", "bert_base")  # those of the paper
MOST_BYTES = 1_000_000  # of a bundle
KNOWN = 256  # the most records of a task that are looked at
TUNING = 2 / 3  # the share of a target's time for tuning
SEED = Path(__file__).resolve().parents[2] / "registry" / "seed"


@click.command
@click.argument("networks", nargs=-1)
@click.option("--targets", type=Listed(), default=TARGETS, help="Of which code runs here.")
@number("--minutes", 20.0, "Of all; with all networks and a busy machine it takes longer.")
@number("--confirm", 3, "How often a schedule must win.")
@click.option("--device", default="shipped", help="The host that the records name.")
@click.option("--registry", type=Path, help="Where what was tuned is kept, and found.")
@click.option("--folder", type=Path, default=SEED, help="Where the bundle is written.")
@click.option("--sign", type=Path, help="Sign the bundle with this private key.")
def command(
    networks: tuple[str, ...],
    targets: list[str],
    minutes: float,
    confirm: int,
    device: str,
    registry: Path | None,
    folder: Path,
    sign: Path | None,
) -> None:
    """Tune, confirm, and write the bundle."""
    signer = load_signer(sign) if sign else None  # first, as a wrong key would waste all the work
    found, seconds = [], TUNING * minutes * 60 / len(targets)
    with tempfile.TemporaryDirectory() as scratch:
        tuned = registry or Path(scratch, "tuned.db")
        models = [written(name, Path(scratch)) for name in networks or NETWORKS]
        for target in targets:
            api.tune(models, target=target, registry=tuned, time=seconds, devices=())
            won = confirmed(models, target, winners(tuned), confirm, Path(scratch))
            progress(f"{target}: {len(won.records)} records")
            found.append(won)
    print(write(united(found, device), folder, signer))


def written(name: str, folder: Path) -> Path:
    """Write a network to a file; return its path."""
    model = folder / f"{Path(name).stem}.onnx"
    onnx.save(network(name), model)
    return model


def confirmed(models: list[Path], target: str, claims: Bundle, times: int, scratch: Path) -> Bundle:
    """The claims that are the best of their task on a target, so many times in a row."""
    for _ in range(times):
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            path = Path(folder, "registry.db")
            take_in(path, unproved(claims))
            api.tune(models, target=target, registry=path, trials=0, min_impact=0.0, devices=())
            claims = winners(path)
    return claims


def unproved(won: Bundle) -> Bundle:
    """The records as claims, which a build uses only once they have won on its machine."""
    claims = {id_: replace(one, claimed=True) for id_, one in won.records.items()}
    return replace(won, records=claims)


def winners(path: Path) -> Bundle:
    """The best records of a registry that were measured there and have beaten the default."""
    bundle, _ = contents(path)
    keys, tvm = {one.key for one in bundle.records.values()}, version("apache-tvm")
    with Registry.open(path, write=False) as registry:
        ranked = [registry.top(key, tvm, KNOWN) for key in keys]
    kept = {known[0].id: known[0] for known in ranked if known and is_better(*known)}
    return closed(replace(bundle, records=kept, searches=set(), contests=set()))


def is_better(best: Record, *others: Record) -> bool:
    """Whether a record is no claim, and is not the default schedule."""
    defaults = {one.trace for one in others if one.provenance.search == "default"}
    return not best.claimed and bool(defaults) and best.trace not in defaults


def united(bundles: Iterable[Bundle], device: str) -> Bundle:
    """One bundle of the content of all, with another name for the device."""
    whole = Bundle()
    for one in bundles:
        whole.targets.update(one.targets)
        whole.workloads.update(one.workloads)
        for record in one.records.values():
            there = replace(record, provenance=replace(record.provenance, device=device))
            whole.records[there.id] = there
    return whole


def write(base: Bundle, folder: Path, signer: Signer | None = None) -> str:
    """Replace the bundle in the folder; return a sentence about the new one."""
    if signer is not None:
        base = replace(base, stamp=Stamp.succeeding((), ()))
    content = base.to_bytes()
    if len(content) > MOST_BYTES or not base.records:
        what = f"{len(base.records)} records in {len(content)} bytes are not shipped"
        raise SystemExit(f"{what}: there must be some, in at most {MOST_BYTES}")
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.jsonl*"):
        old.unlink()
    path = folder / name_of(content)
    if signer is not None:
        path.with_name(path.name + SIGNATURE).write_text(signer.sign(content), encoding="ascii")
    path.write_bytes(content)
    return f"{len(base.records)} records, {len(content)} bytes: {path}"
