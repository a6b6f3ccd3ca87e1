"""Whole jobs on a farm: a real scheduler, workers that die, and a command that is interrupted."""

import dataclasses
import json
import signal

import pytest
from helpers.cli_process import answer, program, refused
from helpers.device_runs import measured
from helpers.farm import TUNE
from helpers.processes import remaining

from ansor_deploy.system.environment import shipped
from ansor_deploy.target import HOST, load_target


def test_what_a_lost_worker_had_is_done_again_by_another(farm, folder, tuning):
    farm.worker("one")
    run = tuning(farm, "net.onnx", "--target", "board.toml", "--target", "host")
    run.until(r"net\.onnx +board +one +tune +[1-9]")
    farm.kill("one")
    run.until("one is lost; waiting for another worker")
    assert remaining(farm.mark("one")) == []
    farm.worker("two", threads=2)
    assert run.end() == 0, run.told
    jobs = json.loads(run.answer)["jobs"]
    names = [(job["model"], job["target"]) for job in jobs]
    assert names == [("net.onnx", "board"), ("net.onnx", "host")]
    assert {job["state"] for job in jobs} == {"done"}
    # A worker may have ended others before it is killed, in an order that is the scheduler's.
    (lost,) = [job for job in jobs if job["begun"] == 2]
    assert lost["worker"] == "two"
    assert f"{lost['model']} for {lost['target']} is repeated by two" in run.told
    assert all(job["records"] for job in jobs)
    shown = answer(folder, "registry", "stats", "--registry", "r.db")
    assert shown["records"] == sum(job["records"] for job in jobs)


def test_what_was_sent_before_an_interrupt_is_kept(whole_farm, folder, tuning):
    run = tuning(whole_farm, "net.onnx", "--target", "board.toml")
    run.until(r"net\.onnx +board +one +tune +[1-9]")
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130
    assert "interrupted" in run.told
    assert measured(folder) == 0  # they are the worker's, which sends records
    again = tuning(whole_farm, "net.onnx", "--target", "board.toml")
    assert again.end() == 0, again.told
    (job,) = json.loads(again.answer)["jobs"]
    assert job["begun"] == 1
    assert job["state"] == "done"


@pytest.mark.slow
def test_a_farm_that_goes_away_is_named(farm, tuning):
    farm.worker("one")
    run = tuning(farm, "net.onnx")
    run.until(r"net\.onnx +host +one +tune +[1-9]")
    farm.kill_scheduler()
    assert run.end() == 4, run.told
    assert "went away" in run.told
    assert "the same command resumes" in run.told
    # A job that does not end when it is called off is ended after ten seconds.
    assert remaining(farm.mark("one"), [farm.workers["one"].pid], patience=60) == []


def test_a_job_that_fails_says_why(whole_farm, tuning):
    words = ("--target", "board.toml", "--target", "host", "--retune", "nothing")
    run = tuning(whole_farm, "net.onnx", "other.onnx", *words)
    assert run.end() == 2, run.told
    jobs = json.loads(run.answer)["jobs"]
    names = [(job["model"], job["target"]) for job in jobs]
    assert names == [(m, t) for t in ("board", "host") for m in ("net.onnx", "other.onnx")]
    for job in jobs:
        assert "no task is called nothing" in job["error"]
        assert (job["state"], job["exit_code"]) == ("failed", 2)


def test_what_nobody_can_serve_is_refused(whole_farm, folder):
    words = ("tune", "net.onnx", "--target", "rpi3", "--farm", whole_farm.address, *TUNE)
    refused(program(folder, *words), 4, "no worker of the farm", "rpi3", "--no-device")
    refused(program(folder, *words, "--lock", "r.lock"), 2, "no --lock")
    (folder / "ansor-deploy.toml").write_text('trust = "keys.pub"\n')
    refused(program(folder, *words), 2, "signed records only")


def test_several_targets_need_a_farm(folder):
    words = ("tune", "net.onnx", "--target", "host", "--target", "board.toml")
    refused(program(folder, *words), 2, "several targets need a farm")


def test_the_host_of_another_machine_is_not_this_one():
    from ansor_deploy.farm import worker  # loads all of Dask

    here = load_target(HOST, [shipped("targets")])
    other = dataclasses.replace(here, cpu="another")
    named = dataclasses.replace(other, name="avx2")
    assert [worker._machines(target) for target in (here, other, named)] == [1, 0, 1]
