"""The tool that is installed on this machine, as the repository `@ansor_deploy_tool`."""

# From Bazel 9 on the C++ rules are no part of Bazel.
_NATIVE_CC = """\
cc = cc_common
cc_info = CcInfo
cc_library = native.cc_library
"""
_LOADED_CC = """\
load("@rules_cc//cc:cc_library.bzl", _cc_library = "cc_library")
load("@rules_cc//cc/common:cc_common.bzl", _cc_common = "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", _CcInfo = "CcInfo")

cc = _cc_common
cc_info = _CcInfo
cc_library = _cc_library
"""

_BUILD = """\
load("{toolchain_bzl}", "ansor_toolchain")
load(":cc.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

exports_files(["ansor-deploy", "versions"])

cc_library(
    name = "runtime",
    srcs = glob(["c/*.c"]) + ["lib/libtvm_ffi.so", "lib/libtvm_runtime.so"],
    hdrs = glob(["c/*.h", "include/**/*.h"]),
    includes = ["c", "include"],
)

ansor_toolchain(
    name = "installed",
    {machine},
    tool = "ansor-deploy",
    versions = "versions",
)

toolchain(
    name = "toolchain",
    target_compatible_with = ["@platforms//cpu:{cpu}"],
    toolchain = ":installed",
    toolchain_type = "{toolchain_type}",
)
"""

_TOOL = """\
#!/bin/sh
exec {path} "$@"
"""

def _ansor_deploy_tool_impl(rctx):
    tool = _find_tool(rctx)
    rctx.symlink(_ask(rctx, tool, "hooks", "c"), "c")
    site = rctx.path(_ask(rctx, tool, "hooks", "runtime"))
    rctx.symlink("%s/tvm_ffi/include" % site, "include")
    for package, library in [("tvm_ffi", "libtvm_ffi.so"), ("tvm", "libtvm_runtime.so")]:
        rctx.symlink("%s/%s/lib/%s" % (site, package, library), "lib/" + library)
    rctx.file("versions", "\n".join(_versions(rctx, tool, site)) + "\n", executable = False)
    rctx.file("ansor-deploy", _TOOL.format(path = "'%s'" % tool))
    rctx.file("cc.bzl", _NATIVE_CC if _is_before_9(rctx) else _LOADED_CC, executable = False)
    rctx.file("BUILD", _BUILD.format(
        toolchain_bzl = Label("//private:toolchain.bzl"),
        toolchain_type = Label("//:toolchain_type"),
        machine = _machine(rctx, tool),
        cpu = _cpu(rctx),
    ), executable = False)

def _find_tool(rctx):
    named = rctx.attr.path or rctx.os.environ.get("ANSOR_DEPLOY", "")
    tool = rctx.path(named) if named else rctx.which("ansor-deploy")
    if not tool or not tool.exists:
        fail("%s is not there. Install ansor-deploy, and name it where it is not on the PATH: " %
             (named or "ansor-deploy") + "--repo_env=ANSOR_DEPLOY=/path/to/ansor-deploy")
    return tool

def _ask(rctx, tool, *words):
    result = rctx.execute([tool] + list(words))
    if result.return_code:
        fail("%s %s: %s" % (tool, " ".join(words), result.stderr.strip()))
    return result.stdout.strip()

def _versions(rctx, tool, site):
    """What makes other bytes of the same files: the tool and TVM, by their versions."""
    tvm = [path.basename for path in site.readdir() if path.basename.startswith("apache_tvm")]
    return [_ask(rctx, tool, "--version")] + sorted(tvm)

def _machine(rctx, tool):
    """The attribute of the toolchain that says what is built for.

    This machine is described once, in a file: what is built for it is then known by its digest,
    and no cache takes it for another machine's.
    """
    if rctx.attr.target != "host":
        return 'target = "%s"' % rctx.attr.target
    shown = json.decode(_ask(rctx, tool, "targets", "show", "host", "--json"))
    fields = [key for key in sorted(shown) if _is_field(key, shown[key])]
    lines = ["%s = %s" % (key, json.encode(shown[key])) for key in fields]
    rctx.file("host.toml", "\n".join(lines) + "\n", executable = False)
    return 'descriptor = "host.toml"'

def _is_field(key, value):
    return value != None and key not in ["name", "fingerprint"]

def _cpu(rctx):
    return rctx.execute(["uname", "-m"]).stdout.strip()

def _is_before_9(rctx):
    """A distribution's own build may not know its version; whether it has what 7.1 brought shows its age."""
    major = native.bazel_version.partition(".")[0]
    return int(major) < 9 if major.isdigit() else not hasattr(rctx, "watch")

ansor_deploy_tool = repository_rule(
    implementation = _ansor_deploy_tool_impl,
    doc = "Finds the tool, TVM's runtime beside it, and, for `host`, what this machine is.",
    attrs = {
        "path": attr.string(doc = "Of the executable. By default $ANSOR_DEPLOY, else on the PATH."),
        "target": attr.string(doc = "The machine to build for.", default = "host"),
    },
    configure = True,
    environ = ["ANSOR_DEPLOY", "PATH"],
    local = True,
)

def ansor_deploy_repositories(**kwargs):
    """For WORKSPACE files: the tool, and its toolchain. Takes what `ansor_deploy_tool` takes."""
    ansor_deploy_tool(name = "ansor_deploy_tool", **kwargs)
    native.register_toolchains("@ansor_deploy_tool//:toolchain")
