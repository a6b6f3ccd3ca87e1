"""One model imported in several shapes: one module, with a `main` for each."""

from collections.abc import Sequence

from ..._tvm import relax, structural_map, tirx, tvm
from .importer import Imported


def joined(variants: Sequence[Imported]) -> Imported:
    """All functions of the variants; those of the first keep their names, others get new ones.

    The `main` of the k-th variant is named `main_k`, from 1 on. Equal kernels become one.
    """
    first, *others = variants
    if not others:
        return first
    builder = relax.BlockBuilder(first.mod)
    mains = {f"main_{at}": _moved(each.mod, builder) for at, each in enumerate(others, start=1)}
    mod = builder.get()
    for name, main in mains.items():
        mod[name] = main.with_attr("global_symbol", name)
    return Imported(
        mod,
        tuple(one for variant in variants for one in variant.interfaces),
        tuple(one for variant in variants for one in variant.origins),
    )


def _moved(mod: tvm.IRModule, builder: relax.BlockBuilder) -> relax.Function:
    """The `main` of a module; its callees are added to the builder's module under new names."""
    moved = {
        name.name_hint: builder.add_func(func, name.name_hint)
        for name, func in mod.functions.items()
        if isinstance(func, tirx.PrimFunc)
    }
    return structural_map(mod["main"], (tvm.ir.GlobalVar, lambda old: moved[old.name_hint]))
