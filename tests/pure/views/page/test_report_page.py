"""A report: its sections, its figures, and that the file stands alone."""

import dataclasses
import math
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from helpers.libraries import manifest, task
from helpers.registry_samples import TARGET
from msgspec.structs import replace

from ansor_deploy.measure.roof import Roof
from ansor_deploy.runtime.profile import KernelTime, Profile
from ansor_deploy.ship.manifest import File, Output
from ansor_deploy.ship.quantised import Distance, Gain, Layer, Quantised
from ansor_deploy.views.page import charts
from ansor_deploy.views.page.content import Facts
from ansor_deploy.views.page.curve import Curve, Tuning
from ansor_deploy.views.page.markdown import markdown
from ansor_deploy.views.page.page import QUANTISATION, SECTIONS, page

TASKS = [
    task("a" * 64, name="conv", title="conv2d 3x3 <b>", op="conv2d"),
    task("b" * 64, name="relu", title="relu 8", op="relu"),
]
TASKS[0] |= {"record": "r1", "flops": 2e6, "bytes": 1e5, "latency_ms": 1.0}
TASKS[1] |= {"record": "default", "flops": 1e4, "bytes": 1e5, "latency_ms": 0.1}
MANIFEST = manifest(
    model={**manifest().to_json()["model"], "name": "net.onnx"},
    inputs=[{"name": "x", "dtype": "float32", "shape": [1, 8]}],
    tasks=TASKS,
    tuning={
        **dict.fromkeys(("skipped", "kept_default"), 0),
        "tasks": 2,
        "hits": 1,
        "origins": {"exact": 0, "team": 1, "base": 0, "near": 0, "share": 0.75},
        "misses": 1,
        "trials": 64,
        "tune_seconds": 9.0,
        "latency_ms": None,
        "no_room": [],
    },
    speed={
        "latency_ms": 2.0,
        "shapes_ms": [2.0],
        "tuned_ms": 2.0,
        "untuned_ms": 4.0,
        "ratio": 0.5,
        "interval": [0.4, 0.6],
        "pairs": 8,
        "verdict": "faster",
        "seen": None,
        "records": "3" * 64,
        "beside": {
            "peer": "ONNX Runtime 1.31.1",
            "ours_ms": 2.0,
            "theirs_ms": 2.5,
            "ratio": 0.8,
            "interval": [0.7, 0.9],
            "turns": 8,
            "verdict": "faster",
            "seen": None,
        },
    },
    shipped="tuned",
    memory={"library": 5_290_000, "weights": 4_970_000, "workspace": 10, "peak": 12_100_000},
    verify={"oracle": "onnxruntime 1", "max_abs_err": 1e-6, "max_rel_err": 2e-6, "seed": 0}
    | {"ok": True},
    verification={"verified": True, "where": "native", "reason": None, "allowed": {}},
)
PROFILE = Profile(
    2e-3,
    (
        KernelTime("k1", "conv", 1.5e-3, ((1, 8),), TASKS[0]),
        KernelTime("k2", "relu", 0.2e-3, ((1, 8),), TASKS[1]),
        KernelTime("k3", "copy", 0.1e-3, ((1, 8),), None),
    ),
)
CURVE = Curve("a" * 64, "conv2d 3x3 <b>", ((1.0, 4.0), (9.0, 2.0), (64.0, 2.0)))
ROOF = Roof(1, 100.0, ((1e6, 1e11), (math.inf, 1e10)))
QUANTISED = Quantised(
    identity="c" * 64,
    quantiser="onnxruntime 1",
    model=File("net.onnx", "d" * 64),
    external=(),
    quantised=Output("net.int8.onnx", "e" * 64, 1_300_000),
    float_bytes=5_200_000,
    samples=200,
    samples_digest="f" * 64,
    compared=64,
    kept=("first<b>",),
    outputs=(Distance("prob<b>", 0.0123, 0.5, 0.985), Distance("zero", None, None, None)),
    layers=(Layer("last<b>", "Gemm", 0.31), Layer("little", "Conv", 0.002)),
    gain=Gain(
        library="a" * 64,
        int8_ms=1.0,
        float_ms=2.5,
        ratio=0.4,
        interval=(0.38, 0.42),
        verdict="faster",
        int8_bytes=1_400_000,
        float_bytes=5_300_000,
    ),
)
FACTS = Facts(
    Path("net.so"),
    MANIFEST,
    TARGET,
    PROFILE,
    ROOF,
    Tuning(CURVE, tuple(n / 7 for n in range(64)), (CURVE,)),
    {"other.onnx": 1},
    {"shared": 1, "trials_saved": 31.6, "seconds_saved": 75.0},
    QUANTISED,
)


class Parsed(HTMLParser):
    """Which tags there are, with their attributes, and what is open at the end."""

    EMPTY = ("meta",)

    def __init__(self, text):
        super().__init__()
        self.tags, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize("known", ["all", "nothing"])
def test_every_section_is_there_and_every_tag_closed(known):
    bare = Facts(
        Path("net.so"), replace(MANIFEST, speed=None, verify=None), TARGET, None, None, None, {}
    )
    parsed = Parsed(page(FACTS if known == "all" else bare))
    assert parsed.open == []
    shown = [key for key in SECTIONS if known == "all" or key != QUANTISATION]
    headings = [attrs["id"] for tag, attrs in parsed.tags if tag == "h2"]
    assert headings == shown
    links = [attrs["href"] for tag, attrs in parsed.tags if tag == "a"]
    assert links == [f"#{key}" for key in shown]


def test_nothing_is_loaded_and_no_script_runs():
    text = page(FACTS)
    tags = Parsed(text).tags
    assert not {"script", "img", "link", "iframe"} & {tag for tag, _ in tags}
    assert not [attrs for _, attrs in tags if {"src", "onclick", "srcset"} & set(attrs)]
    assert not re.findall(r"url\(|@import|https?://", text)


def test_what_others_wrote_is_text():
    assert "<b>" not in page(FACTS)
    assert "conv2d 3x3 &lt;b&gt;" in page(FACTS)


def test_how_the_model_was_quantised():
    text = page(FACTS)
    assert (
        "Faster than the library of the float model: 1.00 ms instead of 2.50 ms a run (0.40); "
        in text
    )
    assert "onnxruntime 1, 200 samples" in text
    assert "1.3 MB, before 5.2 MB" in text
    assert "<dd>first&lt;b&gt;</dd>" in text
    row = "prob&lt;b&gt;", "1.23%", "0.5", "98.5%"
    assert all(f">{cell}</td>" in text for cell in row)
    assert '<td class="">last&lt;b&gt;</td><td class="">Gemm</td><td class="number">31' in text
    assert "little" not in text  # less than a hundredth of the error is nobody's fault
    assert "| beside the float model | 0.40 of its time | 2.50 ms a run without |" in markdown(
        FACTS
    )


def test_the_figures():
    text = page(FACTS)
    assert "<p>2.00x faster than untuned: 2.00 ms a run beside 4.00 ms (1.67x to 2.50x" in text
    assert "that saved 32 trials, about 1m 15s" in text
    assert "<dd>2.00x faster<small>1.67x to 2.50x, 99%</small>" in text
    assert "<dt>beside ONNX Runtime 1.31.1</dt><dd>1.25x" in text
    assert (
        "The build found 1 of 2 tasks, 75.0% of the time: 0 exact, 1 of the team. It tuned 1 task"
        in text
    )
    assert "when each had been tried once to 2.00 ms, in 64 trials and 9.0 s" in text
    assert "no candidate beat" not in text
    # conv takes 1.5 ms, and 2 MFLOP at 100 GFLOP/s take 20 us; relu 200 us, and reading 1 us.
    assert "Better kernels could save 1.68 ms of a run at most" in text
    assert "<dd>4, 100 GFLOP/s, 10 GB/s</dd>" in text
    assert '<td class="">other.onnx</td><td class="number">1</td>' in text


def test_charts_have_a_text_for_those_who_do_not_see_them():
    pictures = re.findall(r"<svg.*?</svg>", page(FACTS), re.DOTALL)
    assert len(pictures) == 4
    assert pictures[0].count('class="roof"') == len(ROOF.levels)
    for one in pictures:
        tree = ET.fromstring(one)  # noqa: S314 - it was made here
        assert tree.attrib["aria-label"] == tree.find("title").text


def test_what_a_model_is_called_is_no_markdown():
    name = "# [x](https://x.org) ![y](y) @all | <b>`z`\n"
    model = replace(FACTS.manifest.model, name=name)
    said = markdown(dataclasses.replace(FACTS, manifest=replace(FACTS.manifest, model=model)))
    first = said.splitlines()[0]
    assert not set("[]()@|<>`#!").difference("()#").intersection(first.replace("&#", ""))
    assert "://" not in first
    assert unescape(first) == "## # [x](https://x.org) ![y](y) @all | <b>`z`\\n on board"


def test_markdown():
    said = markdown(FACTS)
    assert "| conv2d | 1.50 ms | 75.0% |" in said
    assert "| aaaaaa | conv2d 3x3 &#60;b&#62; | 1.50 ms | 75.0% |" in said


@pytest.mark.parametrize(
    ("low", "high", "logarithmic", "ticks"),
    [
        (0.0, 10.0, False, [0.0, 5.0, 10.0]),
        (0.0, 1043.0, False, [0.0, 500.0, 1000.0]),
        (0.3, 250.0, True, [1.0, 10.0, 100.0]),
    ],
)
def test_ticks_are_round(low, high, logarithmic, ticks):
    axis = charts.Axis("x", low, high, 0.0, 100.0, logarithmic)
    assert axis.ticks() == pytest.approx(ticks)
    assert 0 <= axis.at(ticks[0]) <= axis.at(ticks[-1]) <= 100
