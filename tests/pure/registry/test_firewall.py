"""What is not a record that this tool writes stays outside, and the reason is given."""

import copy
import json
import random
import re
from contextlib import suppress

import pytest
from helpers.foreign import DECISIONS, INDEX_MAP, INSTRUCTIONS, content, lines, parts, trace
from helpers.hostile import HOSTILE

from ansor_deploy.errors import RegistryError
from ansor_deploy.registry.bundle import read_bundle
from ansor_deploy.system.digest import canonical_json


def test_a_good_bundle_is_read_and_written_back_the_same():
    good = content(lines(parts(64), parts(128)))
    found = read_bundle(good, "good")
    assert len(found.records) == len(found.workloads) == 2
    assert found.to_bytes() == good


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_records_are_refused_and_named(name):
    spoil, reason = HOSTILE[name]
    one = parts(64)
    spoil(one)
    # Lines are sorted, and the spoilt one may stand anywhere.
    hostile = content(lines(one, parts(128)))
    with pytest.raises(RegistryError, match="nothing of it was taken") as caught:
        read_bundle(hostile, "hostile.jsonl")
    assert reason in caught.value.message
    assert re.search(r"line \d+: ", caught.value.message)
    assert caught.value.message.replace("\n", "").isprintable()
    assert caught.value.message.isascii()


BACKSLASH = chr(92)
GOOD = lines(parts(64))
RAW = {
    "not a number": (lambda line: line.replace("0.001", "NaN"), "not JSON"),
    "infinity": (lambda line: line.replace("0.001", "Infinity"), "not JSON"),
    "overflow": (lambda line: line.replace("0.001", "1e999"), "not JSON"),
    "field twice": (lambda line: line.replace('"id":', '"id":"x","id":'), "canonical"),
    "spaces": (lambda line: line.replace('"id":', '"id": '), "canonical"),
    "escaped letters": (lambda line: line.replace("ansor", BACKSLASH + "u0061nsor"), "canonical"),
    "other id": (lambda line: re.sub('"id":"..', '"id":"00', line), "digest"),
    "no id": (lambda line: re.sub('"id":"[0-9a-f]+"', '"id":null', line), "digest"),
    "thousands of digits": (lambda line: line.replace("0.001", "9" * 5000), "not JSON"),
    "deep nesting": (lambda line: '{"id":' + "[" * 100_000, "nested"),
    "not JSON": (lambda line: "hello", "not JSON"),
    "another kind": (lambda line: '{"zzz":1}', "no entry"),
    "nothing": (lambda line: "{}", "no entry"),
    "a number": (lambda line: "5", "no entry"),
    "other bytes": (lambda line: "\ufffd", "not JSON"),
    "two megabytes": (lambda line: '{"id":"' + "x" * 2_000_000, "characters"),
}


@pytest.mark.parametrize("name", RAW)
def test_hostile_lines_are_refused_and_named(name):
    spoil, reason = RAW[name]
    changed = sorted([spoil(line) if line.startswith('{"id"') else line for line in GOOD])
    assert changed != GOOD
    with pytest.raises(RegistryError) as caught:
        read_bundle(content(changed), "hostile.jsonl")
    assert reason in caught.value.message
    assert caught.value.message.isascii()


FRAMES = {
    "empty": (b"", "not a bundle"),
    "another file": (b"SQLite format 3\0", "not a bundle"),
    "newer": (b'{"ansor-deploy-bundle":2}\n', "update it"),
    "cut off": (content(GOOD)[:-1], "end is missing"),
    "unsorted": (content(reversed(GOOD)), "sorted"),
    "a line twice": (content([GOOD[0], *GOOD]), "sorted"),
}


@pytest.mark.parametrize("name", FRAMES)
def test_what_is_no_bundle_is_refused(name):
    data, reason = FRAMES[name]
    with pytest.raises(RegistryError, match=reason):
        read_bundle(data, "hostile.jsonl")


def test_two_descriptions_of_a_workload_are_refused():
    one, other = parts(64), parts(64)
    other["workload"]["op"] = "conv2d"
    with pytest.raises(RegistryError, match="twice"):
        read_bundle(content(lines(one, other)), "hostile.jsonl")


def test_every_refused_line_is_named():
    spoilt = [parts(size) for size in range(1, 9)]
    for one in spoilt:
        one["record"]["seconds"] = [0.0]
    with pytest.raises(RegistryError) as caught:
        read_bundle(content(lines(*spoilt, parts(64))), "hostile.jsonl")
    assert len(re.findall(r"line \d+: record: times", caught.value.message)) == 8


JUNK = [None, True, -1, 0, 1 << 70, 1.5, 1e308, "", "b1", "l10", "None", "{", "\x1b", [], [[]], {}]
JUNK += [{"a": 1}, [None], ["b1", "b1"], '"', '{"nodes":[]}', "[[],[]]", "\ud800"]


def places(value):
    """Every container within a value and every position in it."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield value, key
        if isinstance(item, (dict, list)):
            yield from places(item)


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_changed_is_taken_in_or_refused_and_never_a_crash(seed):
    rng = random.Random(seed)
    for _ in range(40):
        one, steps = parts(64), json.loads(canonical_json([INSTRUCTIONS, DECISIONS, INDEX_MAP]))
        for _ in range(rng.randint(1, 3)):
            container, key = rng.choice(list(places(rng.choice([one, steps]))))
            container[key] = copy.deepcopy(rng.choice(JUNK))
        if isinstance(steps[0], list) and len(steps[0]) > 11 and isinstance(steps[0][11], list):
            steps[0][11][1:2] = [["b1", json.dumps(steps[2])]]
        if isinstance(one["record"], dict):
            one["record"].setdefault("trace", trace(steps[0], steps[1]))
            if one["record"]["trace"] == parts(64)["record"]["trace"]:
                one["record"]["trace"] = trace(steps[0], steps[1])
        text = content(lines(one))
        with suppress(RegistryError):
            assert read_bundle(text, "changed").to_bytes() == text
