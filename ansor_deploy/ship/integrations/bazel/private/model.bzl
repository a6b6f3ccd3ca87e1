"""The rule behind `ansor_model`: a pure function of declared files."""

load("@ansor_deploy_tool//:cc.bzl", "cc", "cc_info")
load(":providers.bzl", "AnsorInfo")
load(":toolchain.bzl", "MACHINE_ATTRS", "TOOLCHAIN", "check_roots", "machine_of", "shapes")

# Not the user's: what is built may not depend on who builds it. ONNX Runtime, which checks the
# library's numbers, would warn that it finds no folder of a user's.
_ENVIRONMENT = {
    "ANSOR_DEPLOY_PROJECT": "none",
    "LC_ALL": "C.UTF-8",
    "ORT_DISABLE_TELEMETRY": "1",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
}

def _ansor_model_impl(ctx):
    outputs = AnsorInfo(
        library = ctx.outputs.library,
        header = ctx.outputs.header,
        manifest = ctx.outputs.manifest,
        provenance = ctx.outputs.provenance,
    )
    machine = machine_of(ctx)
    check_roots(ctx.label, [ctx.file.model], ctx.files.data)
    _build(ctx, _used_lock(ctx, machine), machine, outputs)
    loaded = [outputs.library, outputs.manifest]
    runtime = ctx.attr.runtime
    return [
        DefaultInfo(
            files = depset(loaded + [outputs.header, outputs.provenance]),
            runfiles = ctx.runfiles(loaded).merge(runtime[DefaultInfo].default_runfiles),
        ),
        outputs,
        cc.merge_cc_infos(cc_infos = [_header_info(ctx, outputs.header), runtime[cc_info]]),
    ]

def _used_lock(ctx, machine):
    """The lines of the lock that are for this model.

    Bazel knows inputs by their bytes, and a lock may be of many models. Which tasks a model has
    follows from the model and the machine: it is found once. When other lines of the lock change,
    a text is filtered again, to the same bytes, and nothing is compiled.
    """
    tasks = ctx.actions.declare_file("_%s/tasks.json" % ctx.label.name)
    used = ctx.actions.declare_file("_%s/used.lock" % ctx.label.name)
    args = _arguments(ctx, ["lock", "tasks", ctx.file.model], machine)
    args.add("-o", tasks)
    args.add_all(shapes(ctx), before_each = "--input-shape")
    _run(ctx, "AnsorTasks", "Reading", args, [ctx.file.model] + ctx.files.data, machine, [tasks])
    args = _arguments(ctx, ["lock", "select", ctx.file.lock], machine)
    args.add("-o", used)
    args.add("--tasks", tasks)
    _run(ctx, "AnsorLock", "Choosing records of", args, [ctx.file.lock, tasks], machine, [used])
    return used

def _build(ctx, lock, machine, outputs):
    args = _arguments(ctx, ["build", ctx.file.model], machine)
    args.add("-o", outputs.library)
    args.add("--lock", lock)
    args.add("--frozen")
    args.add("--header")
    args.add("--quiet")
    args.add_all(shapes(ctx), before_each = "--input-shape")
    args.add_all(ctx.files.rules, before_each = "--rules")
    inputs = [ctx.file.model, lock] + ctx.files.data + ctx.files.rules
    made = [outputs.library, outputs.header, outputs.manifest, outputs.provenance]
    _run(ctx, "AnsorBuild", "Building", args, inputs, machine, made)

def _arguments(ctx, words, machine):
    args = ctx.actions.args()
    args.use_param_file("@%s")
    args.set_param_file_format("multiline")
    args.add_all(words)
    args.add("--target", machine.descriptor or machine.name)
    return args

def _run(ctx, mnemonic, doing, args, inputs, machine, outputs):
    toolchain = ctx.toolchains[TOOLCHAIN]
    ctx.actions.run(
        executable = toolchain.tool,
        arguments = [args],
        inputs = depset(inputs + machine.files + toolchain.versions),
        outputs = outputs,
        env = dict(_ENVIRONMENT, ANSOR_DEPLOY_TUNE = "bazel run %s_tune" % ctx.label),
        mnemonic = mnemonic,
        progress_message = "%s model %s" % (doing, ctx.label),
    )

def _header_info(ctx, header):
    """NAME.h, found by its own name and by its path in the workspace."""
    root = ctx.bin_dir.path
    if ctx.label.workspace_root:
        root += "/" + ctx.label.workspace_root
    context = cc.create_compilation_context(
        headers = depset([header]),
        quote_includes = depset([root, header.dirname]),
    )
    return cc_info(compilation_context = context)

ansor_model = rule(
    implementation = _ansor_model_impl,
    doc = "A model as a library; use the macro of the same name in //:defs.bzl.",
    attrs = dict(
        MACHINE_ATTRS,
        model = attr.label(mandatory = True, allow_single_file = [".onnx"]),
        lock = attr.label(mandatory = True, allow_single_file = True),
        runtime = attr.label(default = "@ansor_deploy_tool//:runtime", providers = [cc_info]),
        library = attr.output(mandatory = True),
        header = attr.output(mandatory = True),
        manifest = attr.output(mandatory = True),
        provenance = attr.output(mandatory = True),
    ),
    provides = [AnsorInfo, cc_info],
    toolchains = [TOOLCHAIN],
)
