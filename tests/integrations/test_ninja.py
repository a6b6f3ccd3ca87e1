"""The tool in a build.ninja that somebody wrote by hand."""

import shlex

from helpers.hooked import Tool
from helpers.scenarios import Scenarios

RULE = """\
rule ansor
  command = $program build $model -o $library --lock $lock --frozen --target $board $
    --rules $rules --header --depfile $out.d
  depfile = $out.d
  restat = 1
  description = Building the model $out

"""


class Ninja(Tool):
    """Built in the folder of outputs, from sources elsewhere."""

    programs = ("ninja",)

    def describe(self, project):
        paths = {
            "program": project.program,
            "lock": project.lock,
            "board": project.board,
            "rules": project.rule,
        }
        lines = [f"{name} = {_word(path)}" for name, path in paths.items()]
        edges = [_edge(project.source / file, name) for name, file in project.models.items()]
        (project.built / "build.ninja").write_text("\n".join([*lines, RULE, *edges]))

    def command(self, project, jobs):
        return ["ninja", "-C", str(project.built), f"-j{jobs}"]


def _edge(model, name):
    """A model; what follows it, so that it is seen when that is made again."""
    beside = " ".join(f"{name}{suffix}" for suffix in (".h", ".json", ".intoto.json"))
    return f"""build {name}.so | {beside}: ansor {_path(model)}
  model = {_word(model)}
  library = {name}.so
"""


def _path(path):
    """As it stands among the inputs and outputs of an edge."""
    return str(path).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


def _word(path):
    """As a word of a command."""
    return shlex.quote(str(path)).replace("$", "$$")


class TestNinja(Scenarios):
    tool = Ninja()
