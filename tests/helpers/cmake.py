"""CMake, called by the tests of its hook and of its example."""

import subprocess

from ansor_deploy.ship.integrations import hook_folder

GENERATORS = {"Ninja": "ninja", "Unix Makefiles": "make"}  # with the program that each needs


def configure(source, built, generator, program, *words):
    hook = f"-DAnsorDeploy_DIR={hook_folder('cmake')}", f"-DAnsorDeploy_EXECUTABLE={program}"
    return run("cmake", "-S", source, "-B", built, "-G", generator, *hook, *words)


def run(*command):
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
