"""Make the manifest of a library from what a build knows about it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, convert
from msgspec.structs import replace

from .. import __version__
from ..codegen.linker import linker_name
from ..errors import UsageError, blaming
from ..model.onnx.file_digest import changed, digest
from ..model.relax.byte_products import byte_products
from ..model.relax.extract import readable
from ..system.digest import file_sha256
from ..system.environment import version
from ..tune.plan import impacts, latencies
from .context import Context
from .islands import islands
from .manifest import (
    UNVERIFIED,
    Code,
    Draft,
    File,
    Interface,
    Kernel,
    Lender,
    Memory,
    Model,
    OtherPlace,
    Target,
    Task,
    Tensor,
)
from .up_to_date import identity

if TYPE_CHECKING:
    from .. import runtime
    from ..codegen.memory import figures
    from ..codegen.model import Compiled
    from ..model.graph.nodes import PlacedCall
    from ..registry.record import TaskKey
    from ..runtime import context as kept
    from ..tune.result import TuneResult
    from ..tune.sources.near import Loan
    from .shipment import Shipment


def describe(shipment: Shipment, tuned: TuneResult, codes: Sequence[Code]) -> Draft:
    """The manifest, as far as it is known before the library was run. codes: the library's."""
    request, model = shipment.request, shipment.model
    shapes = [interface(one) for one in model.imported.interfaces]
    draft = Draft(
        format=2,
        tool=__version__,
        tvm=version("apache-tvm"),
        linker=linker_name(shipment.target),
        identity=identity(model.path.name, model.digest, request, header=shipment.outputs.header),
        model=_model(shipment),
        precision=shipment.precision,
        rules=tuple(_rule(path, shipment) for path in request.rules),
        inputs=shapes[0].inputs,
        outputs=shapes[0].outputs,
        batch=model.batch,
        ranges=model.ranges,
        labels=dict(model.labels),
        variants=tuple(shapes) if len(shapes) > 1 else None,
        context=_context(model.imported.interfaces[0].context),
        target=Target.of(shipment.target),
        tuning=tuned.figures,
        ran_on=None,  # nothing was run yet
        verification=UNVERIFIED,
        verify=None,
        speed=None,
        shipped="tuned" if shipment.records else "untuned",
        lock=None,
        preset=shipment.preset,
        lenders=UNSET if request.frozen else shipment.lent,
        **of_codes(shipment, codes),
    )
    return draft if shipment.locked is None else _frozen(draft, shipment.locked)


def _context(one: kept.Context | None) -> Context | None:
    return None if one is None else convert(one.to_json(), Context)


def of_codes(shipment: Shipment, codes: Sequence[Code]) -> dict[str, Any]:
    """The manifest's fields about compiled code: for the request's target, and for all codes."""
    here = shipment.target.fingerprint
    own = next(one for one in codes if one.target.fingerprint == here)
    names = ("tasks", "kernels", "others", "memory", "may_differ")
    fields = {name: getattr(own, name) for name in names}
    return {**fields, "codes": tuple(codes) if len(codes) > 1 else None}


def _frozen(draft: Draft, lock: str) -> Draft:
    """The manifest of a build from a lock.

    Estimates of the machine's speed are left out: they differ between machines that build the same
    library.
    """
    target = replace(draft.target, peak_gflops=None, memory_gbs=None)
    return replace(draft, target=target, tuning=None, lock=lock)


def described(shipment: Shipment, built: Compiled, taken: figures.Memory) -> Code:
    """The code of a library for one target."""
    return Code(
        target=Target.of(shipment.target),
        tasks=_tasks(shipment, built),
        kernels=kernels(built),
        others=other_places(built, shipment.model.others),
        memory=Memory(**taken.figures()),
        verification=UNVERIFIED,
        lenders=shipment.lent,
        may_differ=islands(shipment.model, shipment.target),
    )


def kernels(built: Compiled) -> tuple[Kernel, ...]:
    """A library's kernels: of each its symbol, its name, and the key of the task's workload."""
    return tuple(
        Kernel(symbol, readable(names[0]), min(built.tasks[symbol], default=None))
        for symbol, names in sorted(built.functions.items())
    )


def other_places(built: Compiled, calls: Iterable[PlacedCall]) -> tuple[OtherPlace, ...]:
    """The places where a model computes something that is no task, with the kernels' symbols.

    A place has several kernels where one of them serves the caller's memory. Places without a
    kernel are left out.
    """
    symbols: dict[str, list[str]] = defaultdict(list)
    for symbol, names in sorted(built.functions.items()):
        for name in dict.fromkeys(names):
            symbols[name].append(symbol)
    found = ((at, symbols[name]) for name, at in calls if name in symbols)
    return tuple(OtherPlace(at.shape, at.nodes, tuple(several)) for at, several in found)


def _lender(loan: Loan) -> Lender:
    machine = loan.lender.machine
    target = machine.fingerprint if machine else loan.schedule.key.target
    return Lender(loan.lender.workload.key, target)


def _tasks(shipment: Shipment, built: Compiled) -> tuple[Task, ...]:
    """The tasks; without estimates in a frozen build."""
    known = {} if shipment.request.frozen else _estimates(shipment)
    aside = {record.key for record, _ in shipment.put_aside}
    used = {key: one.id for key, one in shipment.records.items() if key not in aside}
    return tuple(
        Task(
            name=task.name,
            title=task.title,
            op=task.workload.op,
            key=task.key.workload,
            weight=task.weight,
            flops=task.workload.flops,
            bytes=task.workload.bytes,
            byte_products=byte_products(task.mod),
            record=used.get(task.key, "default"),
            fallback=built.fallbacks.get(task.key.workload),
            rewriting=built.rewritings.get(task.key.workload),
            lender=_lender(shipment.loans[task.key]) if task.key in shipment.loans else None,
            places=task.places,
            impact=share,
            latency_ms=taken,
        )
        for task in shipment.model.tasks
        for share, taken in (known.get(task.key, (None, None)),)
    )


def _estimates(shipment: Shipment) -> dict[TaskKey, tuple[float, float]]:
    """For each task, its share of the time and its milliseconds."""
    words = (shipment.model.tasks, shipment.records, shipment.target)
    seconds, shares = latencies(*words), impacts(*words)
    return {key: (shares[key], seconds[key] * 1e3) for key in seconds}


def interface(one: runtime.interface.Interface) -> Interface:
    """The manifest's entry of one of a library's shapes."""
    inputs, outputs = (
        tuple(Tensor(info.name, info.shape, info.dtype, info.lengths) for info in some)
        for some in (one.inputs, one.outputs)
    )
    return Interface(inputs=inputs, outputs=outputs)


def _model(shipment: Shipment) -> Model:
    path, external = shipment.model.path, shipment.model.external
    with blaming(path):
        if digest(path, external) != shipment.model.digest:
            raise changed("built")
    return Model(
        name=path.name,
        digest=shipment.model.digest,
        sha256=file_sha256(path) if external else shipment.model.digest,
        external=tuple(_file(one, path.parent) for one in external),
        input_shapes=shipment.request.shapes_json,
    )


def _rule(path: Path, shipment: Shipment) -> File:
    """A user's rule; UsageError where it is no longer what it was when it was asked."""
    found = _file(path, path.parent)
    if shipment.rules.get(path, found.sha256) != found.sha256:
        hint = "repeat the command once it is whole"
        raise UsageError("the rule was changed while the model was built", hint, path)
    return found


def _file(path: Path, folder: Path) -> File:
    return File(str(path.relative_to(folder)), file_sha256(path))
