"""find_package(AnsorDeploy) under both of CMake's generators that make files."""

import json
import struct

import pytest
from helpers.cli_inside import answer
from helpers.cmake import GENERATORS, configure, run
from helpers.hooked import SUFFIXES, Tool, observed_program, require
from helpers.lab import net, save
from helpers.scenarios import Scenarios

AARCH64 = 183  # e_machine in the header of an ELF file

HEAD = """\
cmake_minimum_required(VERSION 3.20)
project(scenarios LANGUAGES C)
find_package(AnsorDeploy 0.2 CONFIG REQUIRED)
"""
MODEL = """
ansor_deploy_model(NAME {name} MODEL "{file}" LOCK models.lock TARGET board.toml RULES rule.py
  TUNE --trials 2 --registry tuned.db)
"""
TOOLCHAIN = """\
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR {processor})
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
# There may be no C library for it to link with: a model needs none.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
"""


class CMake(Tool):
    """Configured once; sources and build apart."""

    def __init__(self, generator):
        self.generator = generator
        self.programs = ("cmake", "cc", GENERATORS[generator])

    def describe(self, project):
        models = [MODEL.format(name=name, file=file) for name, file in project.models.items()]
        (project.source / "CMakeLists.txt").write_text(HEAD + "".join(models))
        done = configure(project.source, project.built, self.generator, project.program)
        assert done.returncode == 0, done.stdout

    def command(self, project, jobs):
        return ["cmake", "--build", str(project.built), f"-j{jobs}"]

    def output(self, project, name):
        return project.built / "ansor_deploy" / f"{name}.so"


class CMakeScenarios(Scenarios):
    def test_what_was_deleted_is_made_again(self, project):
        before = project.contents()
        for suffix in SUFFIXES:
            project.output(suffix=suffix).unlink()
            build = project.build()
            assert (build.code, build.codes, project.contents()) == (0, {"net": 0}, before)
            assert project.build().calls == {}

    def test_a_target_tunes(self, project):
        project.lock.unlink()
        assert project.build().code != 0
        done = run("cmake", "--build", project.built, "--target", "tune")
        assert done.returncode == 0, done.stdout
        assert self.rebuilt(project).changed == {"net"}


class TestCMakeNinja(CMakeScenarios):
    tool = CMake("Ninja")


class TestCMakeMake(CMakeScenarios):
    tool = CMake("Unix Makefiles")


@pytest.fixture
def cross(tmp_path):
    """`cross(processor, generator)`: configure a project for it."""

    def make(processor, generator):
        require(("cmake", "aarch64-linux-gnu-gcc", GENERATORS[generator]))
        source = tmp_path / "source"
        source.mkdir()
        save(net(), source / "net.onnx")
        (source / "toolchain.cmake").write_text(TOOLCHAIN.format(processor=processor))
        model = "ansor_deploy_model(NAME net MODEL net.onnx LOCK net.lock)\n"
        (source / "CMakeLists.txt").write_text(HEAD + model)
        words = ("--toolchain", source / "toolchain.cmake")
        program = observed_program(tmp_path / "bin")
        return configure(source, tmp_path / "built", generator, program, *words)

    return make


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_toolchain_picks_the_descriptor(cross, generator, tmp_path):
    configured = cross("aarch64", generator)
    assert configured.returncode == 0, configured.stdout
    words = ("--target", "cortex-a53", "--lock", "net.lock", "--registry", "r.db")
    answer(tmp_path / "source", "build", "net.onnx", "-o", "../by-hand.so", *words)
    done = run("cmake", "--build", tmp_path / "built")
    assert done.returncode == 0, done.stdout
    library = tmp_path / "built" / "ansor_deploy" / "net.so"
    assert struct.unpack_from("<H", library.read_bytes(), 18) == (AARCH64,)
    manifest = json.loads(library.with_suffix(".json").read_text())
    assert manifest["target"]["name"] == "cortex-a53"


def test_a_processor_without_a_descriptor_is_named(cross):
    configured = cross("riscv64", "Ninja")
    assert configured.returncode != 0
    assert "'riscv64': give one with TARGET" in " ".join(configured.stdout.split())


def test_a_function_call_that_lacks_something_is_named(tmp_path):
    require(("cmake", "cc", "ninja"))
    (tmp_path / "CMakeLists.txt").write_text(HEAD + "ansor_deploy_model(NAME net MODEL a.onnx)\n")
    program = observed_program(tmp_path / "bin")
    configured = configure(tmp_path, tmp_path / "built", "Ninja", program)
    assert configured.returncode != 0
    assert "ansor_deploy_model: LOCK is missing" in configured.stdout


def test_devices_to_tune_on(tmp_path):
    require(("cmake", "cc", "ninja"))
    model = "ansor_deploy_model(NAME net MODEL a.onnx LOCK a.lock TARGET rpi3 DEVICES pi desk)\n"
    (tmp_path / "CMakeLists.txt").write_text(HEAD + model)
    program = observed_program(tmp_path / "bin")
    configured = configure(tmp_path, tmp_path / "built", "Ninja", program)
    assert configured.returncode == 0, configured.stdout
    lines = (tmp_path / "built" / "build.ninja").read_text().splitlines()
    (tunes,) = [line for line in lines if " tune " in line and "COMMAND" in line]
    assert tunes.rstrip().endswith("--target rpi3 --device=pi --device=desk")
    assert not [line for line in lines if " build " in line and "--device" in line]
