"""`ansor_tune`: a program for `bazel run` that measures, and writes a lock into the source tree."""

load(":toolchain.bzl", "MACHINE_ATTRS", "TOOLCHAIN", "check_roots", "machine_of", "shapes")

# Started in its runfiles. The project's settings are those of the source tree.
_SCRIPT = """\
#!/bin/sh
set -eu
: "${{BUILD_WORKSPACE_DIRECTORY:?start it with: bazel run {label}}}"
here=$PWD
cd "$BUILD_WORKSPACE_DIRECTORY"
exec "$here"/{tool} tune {options} "$@"
"""

def _ansor_tune_impl(ctx):
    tool = ctx.toolchains[TOOLCHAIN].tool.executable
    machine = machine_of(ctx)
    check_roots(ctx.label, ctx.files.models, ctx.files.data)
    script = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        output = script,
        content = _SCRIPT.format(
            label = ctx.label,
            tool = _quoted(tool.short_path),
            options = " ".join(_options(ctx, machine)),
        ),
        is_executable = True,
    )
    files = [tool] + ctx.files.models + ctx.files.data + ctx.files.rules + machine.files
    return [DefaultInfo(executable = script, runfiles = ctx.runfiles(files))]

def _options(ctx, machine):
    options = [_found(model) for model in ctx.files.models]
    options += ["--lock", _quoted(_source_path(ctx.attr.lock, ctx.label.package))]
    options.append("--target")
    options.append(_found(machine.descriptor) if machine.descriptor else _quoted(machine.name))
    options += ["--input-shape " + _quoted(shape) for shape in shapes(ctx)]
    options += ["--rules " + _found(rule) for rule in ctx.files.rules]
    options += ["--device " + _quoted(device) for device in ctx.attr.devices]
    return options + [_quoted(option) for option in ctx.attr.options]

def _found(file):
    """A file among the runfiles, as a word of the script."""
    return '"$here"/' + _quoted(file.short_path)

def _quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"

def _source_path(label, package):
    """Where the file of a label lies, from the workspace's root. It need not be there yet."""
    if label.startswith("@"):
        fail("the lock %s is of another repository, which nothing is written to" % label)
    if label.startswith("//"):
        package, _, label = label[2:].partition(":")
    name = label[1:] if label.startswith(":") else label
    return "/".join([part for part in [package, name] if part])

ansor_tune = rule(
    implementation = _ansor_tune_impl,
    doc = "Tunes models and writes their lock: `bazel run`, never a part of a build.",
    attrs = dict(
        MACHINE_ATTRS,
        models = attr.label_list(mandatory = True, allow_files = [".onnx"]),
        lock = attr.string(doc = "The lock's label; the file may be missing.", mandatory = True),
        devices = attr.string_list(doc = "To tune on; by default all of the target."),
        options = attr.string_list(doc = "Of `ansor-deploy tune`."),
    ),
    executable = True,
    toolchains = [TOOLCHAIN],
)
