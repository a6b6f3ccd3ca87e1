"""ansor_deploy.mk in a Makefile."""

import subprocess

from helpers.hooked import Tool, require
from helpers.scenarios import Scenarios

from ansor_deploy.ship.integrations import hook_folder

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
    at_once = 8  # they share out the processors by make's jobserver


def test_devices_to_tune_on(tmp_path):
    require(("make",))
    call = "$(eval $(call ansor_deploy_model,net,net.onnx,rpi3,net.lock))\n"
    text = f"include {hook_folder('make')}/ansor_deploy.mk\n{call}"
    (tmp_path / "Makefile").write_text(text)
    for named, words in (("", ""), ("pi desk", "--device pi --device desk")):
        line = ["make", "-n", "tune-net", f"ANSOR_DEPLOY_DEVICES={named}"]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)
        command = "ansor-deploy tune net.onnx --target rpi3 --lock net.lock --time 10m"
        said = done.stdout.splitlines()[0]
        assert " ".join(said.split()) == f"{command} {words}".strip()
