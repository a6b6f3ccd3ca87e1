"""The toolchain: the tool, and the machine that is built for where a rule names none."""

TOOLCHAIN = str(Label("//:toolchain_type"))  # as a text: older Bazels take no label here

def _ansor_toolchain_impl(ctx):
    if bool(ctx.attr.target) == bool(ctx.file.descriptor):
        fail("%s: give either target or descriptor" % ctx.label)
    return [platform_common.ToolchainInfo(
        tool = ctx.attr.tool[DefaultInfo].files_to_run,
        versions = ctx.files.versions,
        target = ctx.attr.target,
        descriptor = ctx.file.descriptor,
    )]

ansor_toolchain = rule(
    implementation = _ansor_toolchain_impl,
    doc = "How models are built for a machine; `toolchain` registers it for platforms.",
    attrs = {
        "tool": attr.label(
            doc = "The executable `ansor-deploy`.",
            mandatory = True,
            executable = True,
            allow_single_file = True,
            cfg = "exec",
        ),
        "versions": attr.label(
            doc = "A file that differs where another version of the tool does other work.",
            allow_files = True,
        ),
        "target": attr.string(doc = "Name of a shipped machine."),
        "descriptor": attr.label(
            doc = "A machine's TOML file, instead of `target`.",
            allow_single_file = [".toml"],
        ),
    },
)

# Attributes of the rules that say what is built for which machine.
MACHINE_ATTRS = {
    "data": attr.label_list(
        doc = "Files with weights that the model names.",
        allow_files = True,
    ),
    "target": attr.string(doc = "Name of a shipped machine. By default the toolchain's."),
    "descriptor": attr.label(
        doc = "A machine's TOML file, instead of `target`.",
        allow_single_file = [".toml"],
    ),
    "extended": attr.label_list(
        doc = "Files of descriptors that `descriptor` extends.",
        allow_files = [".toml"],
    ),
    "input_shapes": attr.string_dict(doc = "Shapes of dynamic inputs, such as \"1,3,224,224\"."),
    "rules": attr.label_list(doc = "Files of derivation rules.", allow_files = [".py"]),
}

def machine_of(ctx):
    """What a rule builds for: a name, or a descriptor, and the files that say what it is."""
    if ctx.attr.target and ctx.file.descriptor:
        fail("%s: give target or descriptor, not both" % ctx.label)
    own = ctx.attr.target or ctx.file.descriptor
    toolchain = ctx.toolchains[TOOLCHAIN]
    descriptor = ctx.file.descriptor if own else toolchain.descriptor
    return struct(
        name = ctx.attr.target if own else toolchain.target,
        descriptor = descriptor,
        files = ([descriptor] if descriptor else []) + ctx.files.extended,
    )

def shapes(ctx):
    """The values of `--input-shape`."""
    return ["%s=%s" % pair for pair in ctx.attr.input_shapes.items()]

def check_roots(label, models, data):
    """Weights are looked for beside the model: both are sources, or both are generated."""
    roots = [model.root.path for model in models]
    for file in data:
        if file.root.path not in roots:
            fail("%s: %s does not lie beside its model: make sources or outputs of both" %
                 (label, file.short_path))
