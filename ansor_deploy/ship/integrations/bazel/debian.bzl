"""What Debian's Bazel (bazel-bootstrap) wants from the network, from where Debian has it.

For WORKSPACE: a call of `debian_repositories` before anything is built. rules_cc, of which Debian's
is too new for its Bazel, is that Bazel's own rules; what measures coverage is left out.
"""

_SHARE = "/usr/share/bazel/"
_FOLDERS = {
    "bazel_skylib": "tools/skylib",
    "platforms": "tools/platforms",
    "rules_java": "rules/java",
    "rules_proto": "rules/proto",
}
_RULES = ["binary", "import", "library", "test", "toolchain", "toolchain_suite"]
_NATIVE = ["cc_%s = native.cc_%s" % (rule, rule) for rule in _RULES]
_CC = "\n".join(_NATIVE + ["cc_flags_supplier = None", "compiler_flag = None", ""])
_NO_COVERAGE = """\
package(default_visibility = ["//visibility:public"])
filegroup(name = "coverage_report_generator")
filegroup(name = "lcov_merger")
"""

def _written(ctx):
    for path, text in ctx.attr.files.items():
        ctx.file(path, text)

_written_repository = repository_rule(_written, attrs = {"files": attr.string_dict()})

def debian_repositories():
    """Declares the repositories that Debian's Bazel would download."""
    for name, folder in _FOLDERS.items():
        native.local_repository(name = name, path = _SHARE + folder)
    _written_repository(name = "rules_cc", files = {"cc/BUILD": "", "cc/defs.bzl": _CC})
    _written_repository(name = "remote_coverage_tools", files = {"BUILD": _NO_COVERAGE})
