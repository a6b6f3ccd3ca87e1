"""The module extension that makes `@ansor_deploy_tool`; Bazel before 6 never loads this file."""

load(":repositories.bzl", "ansor_deploy_tool")

_tool = tag_class(
    doc = "Which tool builds, and for which machine; only the root module is asked.",
    attrs = {
        "path": attr.string(doc = "Of the executable. By default $ANSOR_DEPLOY, else on the PATH."),
        "target": attr.string(doc = "The machine to build for.", default = "host"),
    },
)

def _ansor_deploy_impl(mctx):
    tags = [tag for module in mctx.modules if module.is_root for tag in module.tags.tool]
    if len(tags) > 1:
        fail("name the tool once, not %d times" % len(tags))
    settings = {"path": tags[0].path, "target": tags[0].target} if tags else {}
    ansor_deploy_tool(name = "ansor_deploy_tool", **settings)

ansor_deploy = module_extension(
    implementation = _ansor_deploy_impl,
    tag_classes = {"tool": _tool},
)
