"""ansor_deploy.mk in a Makefile."""

from helpers.hooked import Tool
from helpers.scenarios import Scenarios

HEAD = """\
ANSOR_DEPLOY_OUT = ../built
ANSOR_DEPLOY_TUNE_FLAGS = --trials 2 --registry tuned.db
include $(shell ansor-deploy hooks make)/ansor_deploy.mk
"""
MODEL = """
$(eval $(call ansor_deploy_model,{name},{file},board.toml,models.lock,--rules rule.py))
all: $({name}_LIBRARY) $({name}_HEADER)
"""


class Make(Tool):
    """Run among the sources, with the outputs elsewhere."""

    programs = ("make", "cc")

    def describe(self, project):
        files = {name: file.replace(" ", r"\ ") for name, file in project.models.items()}
        models = [MODEL.format(name=name, file=file) for name, file in files.items()]
        (project.source / "Makefile").write_text(HEAD + "".join(models))

    def command(self, project, jobs):
        return ["make", f"-j{jobs}"]


class TestMake(Scenarios):
    tool = Make()
