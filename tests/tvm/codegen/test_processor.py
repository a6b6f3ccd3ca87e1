"""A library asks the processor before its code runs."""

import re
from dataclasses import replace

import pytest
from helpers import graphs
from helpers.built import HOST, compiled

from ansor_deploy.codegen.llvm_text import header
from ansor_deploy.codegen.processor import SOURCE, TEXTS, features, least
from ansor_deploy.errors import DeviceError
from ansor_deploy.runtime.functions import open_machine
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.host import architecture, processor_flags
from ansor_deploy.target import load_target

X86 = pytest.mark.skipif(architecture() != "x86_64", reason="instructions of x86-64")


def relu():
    return graphs.model([graphs.node("Relu", "x", "y")], {"x": (3, 5)})


@pytest.mark.parametrize("arch", TEXTS)
def test_the_compiled_text_is_of_this_source(arch):
    text = TEXTS[arch].read_text()
    assert text.partition("\n")[0] == header(SOURCE), "run docs/make_llvm.py"
    assert "!srcloc" not in text


def test_what_code_may_use_follows_from_the_cpu_and_the_features():
    wide = load_target("intel-cpu-avx512", [shipped("targets")])
    assert {"avx512f", "avx512vl", "fma"} <= {*features(wide)}
    assert "avx512f" not in features(replace(wide, features=("-avx512f",)))
    assert not {"avx", "sse4.2"} & {*features(least(wide))}
    board = load_target("rpi3", [shipped("targets")])
    assert "dotprod" in features(replace(board, features=("+dotprod",)))


@X86
def test_a_library_that_needs_what_this_processor_lacks_is_refused_in_words(tmp_path):
    lacking = {"xop": "+xop", "avx512_fp16": "+avx512fp16"}
    flag = next((flag for flag in lacking if flag not in processor_flags()), None)
    if flag is None:
        pytest.skip("this processor lacks nothing that is known here")
    target = replace(HOST, features=(*HOST.features, lacking[flag]))
    compiled(relu(), target).export(path := tmp_path / "model.so", target)
    with pytest.raises(DeviceError) as refused:
        open_machine(path, ["main"])
    what = f"is built for a processor with .*{lacking[flag][1:]}, which this one \\("
    assert re.search(what, str(refused.value))
    assert "--target" in refused.value.hint
    assert refused.value.file == path


def test_a_library_for_this_processor_loads(tmp_path):
    compiled(relu()).export(path := tmp_path / "model.so", HOST)
    assert open_machine(path, ["main"])["main"]
