"""What a person reads while a build runs: the same events as lines and on a terminal."""

import io
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from rich.console import Console

from ansor_deploy.farm.table import Row
from ansor_deploy.ship.manifest import Speed
from ansor_deploy.ship.race.race import race_of
from ansor_deploy.ship.verify.verify import Verification
from ansor_deploy.tune.result import Round, TuneResult
from ansor_deploy.tune.scheduler import Progress
from ansor_deploy.views import text
from ansor_deploy.views.choose import redraws, report_on_stderr
from ansor_deploy.views.live import LiveReport, panel
from ansor_deploy.views.plain import PlainReport, QuietReport

TITLE = "conv2d 3x3 64->64 @56x56 +add+relu"
ROUND = Round("conv2d_add_relu", TITLE, "a" * 64, 16, "largest gradient", 0.81, 12.3)
PROGRESS = Progress(ROUND, 128, 640, 3, 65.0, 240.0)
UNTUNED = "untuned"
FASTER = Speed.raced((1.0,), race_of(UNTUNED, 1.0, 1.84, 1 / 1.84, (0.53, 0.56), 10))
SLOWER = Speed.raced((1.0,), race_of(UNTUNED, 2.0, 1.0, 2.0, (1.9, 2.1), 10))
RIGHT = Verification(True, 1e-6, 2e-5, "ONNX Runtime", 0)
WRONG = Verification(False, 0.5, 2.0, "ONNX Runtime", 0)


@pytest.fixture
def plain():
    return PlainReport(io.StringIO())


@pytest.fixture
def live():
    console = Console(file=io.StringIO(), force_terminal=True, width=80, highlight=False)
    return LiveReport(console)


def lines_of(report):
    return report._stream.getvalue().splitlines()


def screen_of(report):
    report.close()
    return report._console.file.getvalue()


def unstyled(renderable):
    console = Console(file=io.StringIO(), width=80)
    console.print(renderable)
    return console.file.getvalue()


# Figures


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        (0.04, "0.0 s"),
        (4.21, "4.2 s"),
        (9.99, "10.0 s"),
        (59.4, "59 s"),
        (59.6, "1m 00s"),
        (185, "3m 05s"),
        (3599.7, "1h 00m"),
        (3720, "1h 02m"),
        (math.inf, "unknown"),
    ],
)
def test_duration(seconds, says):
    assert text.duration(seconds) == says


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        (12.34e-6, "12.3 us"),
        (0.9994e-3, "999 us"),
        (0.9996e-3, "1.00 ms"),
        (1.234e-3, "1.23 ms"),
        (123.4e-3, "123 ms"),
        (2.05, "2.05 s"),
        (math.inf, "none"),
    ],
)
def test_latency(seconds, says):
    assert text.latency(seconds) == says


def test_shortened_keeps_both_ends():
    assert text.shortened("abcdefghij", 7) == "ab..hij"
    assert text.shortened("abc", 3) == "abc"


FIGURES = {"tasks": 12, "hits": 3, "misses": 5, "skipped": 4, "trials": 320}
FIGURES |= {"tune_seconds": 185.0, "latency_ms": 12.3}


def test_tune_summary():
    result = TuneResult(**FIGURES)
    assert text.tune_summary(result) == (
        "12 tasks: 3 reused, 5 tuned, 4 skipped; 320 trials in 3m 05s; "
        "tasks alone add up to about 12.3 ms"
    )


def test_tune_summary_counts_what_got_a_trial():
    result = TuneResult(**{**FIGURES, "trials": 2, "tune_seconds": 1.0})
    rounds = [Round("t", "conv", key, 1, "first look", 1.0, 12.3) for key in ("a", "b", "a")]
    said = text.tune_summary(structs.replace(result, rounds=tuple(rounds)))
    assert said.startswith("12 tasks: 3 reused, 2 tuned, 3 not reached, 4 skipped")
    assert "5 untuned" in text.tune_summary(structs.replace(result, trials=0))


def test_that_nothing_was_gained_is_said_first():
    result = TuneResult(**FIGURES, kept_default=5)
    assert text.tune_summary(result).startswith("no candidate beat the default schedules; 12 tasks")
    assert not structs.replace(result, kept_default=4).gained_nothing
    assert not structs.replace(result, misses=0, kept_default=0).gained_nothing


# Lines


def test_plain_stage(plain):
    plain.stage("import", "net.onnx")
    plain.stage("compile")
    assert lines_of(plain) == ["[import] net.onnx", "[compile]"]


def test_plain_progress(plain):
    plain.progress(PROGRESS)
    lines = lines_of(plain)
    assert max(map(len, lines)) <= 80
    assert " ".join(line.strip() for line in lines) == (
        f"128/640 trials, 3 failed, 1m 05s gone, 4m 00s left; {TITLE}: "
        "best 810 us (largest gradient); tasks alone about 12.3 ms"
    )


def test_plain_results(plain):
    plain.verified(RIGHT)
    plain.verified(WRONG)
    plain.compared(FASTER)
    plain.wrote([Path("a directory") / ("x" * 90), Path("net.so.json")])
    for _ in range(2):
        plain.warn_once("a rule failed")
    plain.warn("no records yet")
    said = plain._stream.getvalue()
    assert "outputs agree with ONNX Runtime: largest error 1e-06 absolute" in said
    assert "OUTPUTS DIFFER from ONNX Runtime" in said
    assert "1.84x faster than untuned" in said
    assert said.count("warning: a rule failed\n") == 1
    assert f"wrote a directory/{'x' * 90}\nwrote net.so.json\n" in said
    assert said.endswith("warning: no records yet\n")


@pytest.mark.parametrize(("pause", "said"), [(0, ["[tasks] tasks 12/57"]), (math.inf, [])])
def test_plain_steps_are_said_now_and_then(pause, said):
    report = PlainReport(io.StringIO(), pause)
    report.stage("tasks", "of 60 functions")
    report.step("tasks", 12, 57)
    assert lines_of(report) == ["[tasks] of 60 functions", *said]


def test_quiet_report_only_warns():
    report = QuietReport(io.StringIO())
    report.stage("import")
    report.step("passes", 1, 2)
    report.progress(PROGRESS)
    report.warn("old record")
    assert lines_of(report) == ["warning: old record"]


# A terminal


def test_live_panel():
    said = unstyled(panel(PROGRESS, since=5.0))
    assert max(map(len, said.splitlines())) <= 80
    assert "128/640 trials, 3 failed" in said
    assert "1m 10s gone, 3m 55s left" in said
    assert f"{TITLE}: best 810 us (largest gradient)" in said
    assert "tasks alone about 12.3 ms" in said


def test_live_panel_without_a_total():
    nothing_yet = Round("t", "t", "", 16, "", math.inf, 1e3)
    bounded_by_time = Progress(nothing_yet, 128, 0, 0, 5.0, math.inf)
    said = unstyled(panel(bounded_by_time))
    assert "128 trials" in said
    assert "unknown left" in said
    assert "t: none ran" in said


def test_live_draws_all_events(live):
    live.stage("import", "40 nodes")
    live.step("passes", 12, 57)
    live.stage("tune", "net.onnx")
    live.progress(PROGRESS)
    live.warn("a candidate crashed")
    live.progress(PROGRESS)
    live.stage("verify")
    live.verified(RIGHT)
    live.compared(FASTER)
    live.wrote([Path("x" * 90)])
    said = screen_of(live)
    for words in (
        "passes 12/57",
        "tune",
        "128/640",
        "a candidate crashed",
        "outputs agree",
        "1.84x",
        "x" * 90,
    ):
        assert words in said


def test_live_gives_the_terminal_back(live):
    live.progress(PROGRESS)
    assert screen_of(live).endswith("\x1b[?25h")  # the cursor is shown again


def test_names_are_no_markup(live):
    live.stage("import", "model[bold].onnx")
    live.warn("[red]net[/red]")
    said = screen_of(live)
    assert "model[bold].onnx" in said
    assert "[red]net[/red]" in said


def test_names_move_no_cursor(live, plain):
    for report in (live, plain):
        report.stage("read", "\x1b]0;pwned\x07.onnx")
        report.warn("\x1b[2J\nwarning: \u202e")
        report.wrote([Path("\x1b[1m\n.so")])
        said = screen_of(report) if report is live else "\n".join(lines_of(report))
        for shown in (r"\x1b]0;pwned\x07.onnx", r"\x1b[2J", r"\u202e", r"\x1b[1m\n.so"):
            assert shown in said
        assert "\nwarning: \\u202e" not in said


# The choice


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Makes stderr a terminal; called in the test, since pytest puts its own stderr before it."""
    for name in ("NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return lambda: monkeypatch.setattr(sys, "stderr", Terminal())


def test_a_terminal_gets_a_live_report(terminal):
    terminal()
    with report_on_stderr() as report:
        assert isinstance(report, LiveReport)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("CI", "true"), ("TERM", "dumb")])
def test_the_environment_asks_for_lines(terminal, monkeypatch, name, value):
    terminal()
    assert redraws()
    monkeypatch.setenv(name, value)
    assert not redraws()


def test_json_asks_for_lines(terminal):
    terminal()
    with report_on_stderr(plain=True) as report:
        assert type(report) is PlainReport


def test_a_pipe_gets_lines(terminal, monkeypatch):
    terminal()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not redraws()


# A farm's jobs

JOBS = [
    Row("net.onnx", "rpi3", "tune", "tcp://127.0.0.1:40123", "pi-lab", 1, 32, 640, 12.3),
    Row("net.onnx", "host", "failed", "two", error="no board", hint="add one"),
]


def test_a_job_is_printed_when_it_has_moved_on(plain):
    plain.jobs(JOBS)
    plain.jobs([replace(JOBS[0], trials=48), JOBS[1]])
    lines = [line.split() for line in lines_of(plain)]
    assert lines == [
        ["net.onnx", "rpi3", "pi-lab", "tune", "32/640", "12.3", "ms"],
        ["net.onnx", "host", "two", "failed", "0", "none"],
        ["net.onnx", "rpi3", "pi-lab", "tune", "48/640", "12.3", "ms"],
    ]


def test_the_table_of_jobs_is_drawn_over(live):
    live.jobs(JOBS)
    shown = screen_of(live)
    assert all(word in shown for word in ("worker", "pi-lab", "32/640", "failed"))


def test_the_answer_says_why_a_job_failed():
    *table, what, hint = text.jobs_lines(JOBS)
    assert len(table) == 3
    assert (what, hint) == ("net.onnx for host: no board", "  hint: add one")


# Details


def test_verbose_lines_say_how_long_each_stage_took(plain):
    told = PlainReport(io.StringIO(), verbose=True)
    for report in (told, plain):
        report.stage("import", "net.onnx")
        report.stage("compile")
        report.close()
    assert [line.split()[0] for line in lines_of(told)] == [
        "[import]",
        "import",
        "[compile]",
        "compile",
    ]
    assert lines_of(told)[1].startswith("  import took 0.")
    assert lines_of(plain) == ["[import] net.onnx", "[compile]"]


def test_a_verbose_terminal_says_how_long_each_stage_took():
    live = LiveReport(Console(file=io.StringIO(), width=80), verbose=True)
    live.stage("import", "40 nodes")
    live.step("passes", 12, 57)
    live.wrote([Path("net.so")])
    live.close()
    said = live._console.file.getvalue()
    assert said.count("import took 0.") == 1
    assert said.index("net.so") < said.index("import took")


@pytest.mark.parametrize("tty", [True, False])
def test_quiet_is_quiet_on_any_terminal(terminal, tty):
    if tty:
        terminal()
    with report_on_stderr(quiet=True) as report:
        assert type(report) is QuietReport


def test_the_next_command_is_for_who_watches(plain, live):
    for report in (plain, live):
        report.suggest("ansor-deploy report net.so")
    assert lines_of(plain) == []
    assert "next     ansor-deploy report net.so" in screen_of(live)


@pytest.mark.parametrize(("interval", "colour"), [((0.4, 0.9), "32"), ((0.4, 1.1), "33")])
def test_a_race_is_green_where_it_is_surely_won(live, interval, colour):
    live.raced(race_of("X 1.0", 1.0, 2.0, 0.5, interval, 8))
    assert re.search(rf"\x1b\[[\d;]*{colour}m", screen_of(live))
