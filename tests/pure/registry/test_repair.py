"""What is whole of a damaged registry is saved, and nothing else."""

import json
import random
import sqlite3
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from helpers import registry_samples
from helpers.cli_inside import program
from helpers.cli_process import refused
from helpers.registry_samples import TARGET, TVM, build, fill, key, record

from ansor_deploy.errors import RegistryError
from ansor_deploy.registry.raw_pages import Pages
from ansor_deploy.registry.record import SearchEnd
from ansor_deploy.registry.salvage import salvage
from ansor_deploy.registry.store import Registry

TABLES = ("workloads", "targets", "measurements", "records", "models", "model_tasks", "builds")
TABLES += ("tunings", "searches", "beaten")
DIGEST = "ab" * 32


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A registry with rows in every table; its rows by table."""
    path = tmp_path_factory.mktemp("original") / "registry.db"
    with Registry.open(path) as registry:
        fill(registry, 1000)
        loser = registry.top(key(0), TVM, 1)[0].id
        registry.add_contest(record(key(0), 2e-3, "x" * 9000), [loser], "2026-01-31T12:00:00Z")
        registry.add_model(DIGEST, "resnet", [(key(n), n + 1) for n in range(20)])
        registry.add_build(build(path, DIGEST, "2026-01-31"))
        registry.add_build(build(path, DIGEST, "2026-02-01", tuned_ms=None, untuned_ms=None))
        registry.add_tuning(TARGET.fingerprint, "ansor", 10, 20.0, "2026-01-31")
        end = SearchEnd(key(0), TVM, "ansor", 10, "limit", 10, "2026-01-31", "f" * 64)
        registry.add_searches([end])
    return path


@pytest.fixture
def path(tmp_path, original):
    copy = tmp_path / "registry.db"
    copy.write_bytes(original.read_bytes())
    return copy


def rows(path):
    with closing(sqlite3.connect(path)) as connection:
        return {t: set(connection.execute(f"SELECT * FROM {t}")) for t in TABLES}  # noqa: S608


def overwrite(path, page):
    whole = bytearray(path.read_bytes())
    size = int.from_bytes(whole[16:18], "big")
    whole[(page - 1) * size : page * size] = b"\xff" * size
    path.write_bytes(whole)


def cells(path):
    """Table and number of rows of each page that has rows."""
    sql = "SELECT pageno, name, ncell FROM dbstat WHERE pagetype = 'leaf'"
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(sql).fetchall()
    return {page: (table, count) for page, table, count in found if table in TABLES}


def test_of_a_whole_file_everything_is_kept(path, original):
    saved = salvage(path)
    assert rows(path) == rows(original)
    assert saved.kept == {table: len(found) for table, found in rows(original).items()}
    assert set(saved.lost.values()) == {0}
    assert saved.aside.read_bytes() == original.read_bytes()
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "registry.db",
        "registry.db.damaged",
    ]


@pytest.mark.parametrize("count", [100, 4096])
def test_a_lost_beginning_costs_what_was_on_it(path, original, count):
    whole = path.read_bytes()
    path.write_bytes(bytes(count) + whole[count:])
    saved = salvage(path)
    expected = {**rows(original), "beaten": set()}  # which SQLite alone knows
    assert rows(path) == expected
    assert saved.lost["records"] is None
    with Registry.open(path) as registry:
        assert registry.verify() == []


def test_any_lost_page_costs_the_rows_on_it(path, original):
    whole, size = rows(original), path.stat().st_size
    pages = cells(original)
    assert size // 4096 > 100
    for page in random.Random(0).sample(sorted(pages), 12):
        path.write_bytes(original.read_bytes())
        overwrite(path, page)
        salvage(path)
        found, (table, count) = rows(path), pages[page]
        for other in set(TABLES) - {table, "beaten"}:
            assert found[other] == whole[other]
        assert found[table] <= whole[table]
        assert len(found[table]) == len(whole[table]) - count


def test_of_a_truncated_file_the_rest_is_kept(path, original):
    pages = original.read_bytes()[: path.stat().st_size // 4096 * 3 // 4 * 4096]
    path.write_bytes(pages)
    salvage(path)
    found, whole = rows(path), rows(original)
    for table in ("records", "measurements"):
        held = [
            n
            for page, (name, n) in cells(original).items()
            if name == table and page * 4096 <= len(pages)
        ]
        assert found[table] <= whole[table]
        assert len(found[table]) == sum(held) > 300


def test_flipped_bits_never_make_a_record(path, original):
    whole, good = original.read_bytes(), rows(original)
    places = random.Random(1)
    flipped = bytearray(whole)
    for _ in range(40):
        flipped[places.randrange(200, len(whole))] ^= 1 << places.randrange(8)
    path.write_bytes(flipped)
    salvage(path)
    found = rows(path)
    assert found["records"] <= good["records"]
    assert {row[0] for row in found["workloads"]} <= {row[0] for row in good["workloads"]}
    lost = sum(len(good[table]) - len(found[table]) for table in ("records", "measurements"))
    assert lost <= 40 + 40  # a flip in a page's own header costs more rows than one
    with Registry.open(path) as registry:
        assert all("lack" in complaint for complaint in registry.verify())


def test_records_whose_target_is_lost_are_kept_for_the_next_build(path, original):
    (page,) = [page for page, (table, _) in cells(original).items() if table == "targets"]
    overwrite(path, page)
    salvage(path)
    with Registry.open(path) as registry:
        assert "records: 1001 lack their targets" in registry.verify()
        registry.add_target(TARGET)
        assert registry.verify() == []
    assert rows(path) == rows(original)


@pytest.mark.parametrize("text", [b"", b"x", b"not a registry at all\n" * 1000])
def test_what_has_no_rows_is_left_alone(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_bytes(text)
    with pytest.raises(RegistryError) as caught:
        salvage(path)
    assert caught.value.exit_code == 8
    assert path.read_bytes() == text
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_in_use_is_not_replaced(path):
    command = [sys.executable, registry_samples.__file__, "hold", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout.readline() == "locked\n"
            with pytest.raises(RegistryError, match="in use by"):
                salvage(path)
        finally:
            holder.kill()
    assert [file.name for file in path.parent.iterdir() if "journal" not in file.name] == [
        path.name
    ]


def test_a_repair_that_saves_nothing_does_not_propose_itself(path):
    path.write_bytes(path.read_bytes()[:4096])
    result = program(path.parent, "registry", "verify", "--repair", "--registry", path)
    refused(result, 8, "no row in it is whole", "registry restore")
    assert "--repair" not in result.stderr


def test_the_command_says_what_was_lost(path, original):
    table = "records"
    page = next(page for page, (name, _) in cells(original).items() if name == table)
    overwrite(path, page)
    words = ("registry", "verify", "--registry", path)
    refused(program(path.parent, *words), 8, f"verify --repair --registry {path}")
    repaired = program(path.parent, *words, "--repair", "--json")
    answer = json.loads(repaired.stdout)["repaired"]
    lost = cells(original)[page][1]
    assert answer["kept"]["records"] == len(rows(original)["records"]) - lost
    assert Path(answer["aside"]).is_file()
    for again in ((), ("--repair",)):
        assert program(path.parent, *words, *again).stdout == f"{path} is whole\n"


def test_the_command_shows_a_table(path):
    path.write_bytes(bytes(100) + path.read_bytes()[100:])
    shown = program(path.parent, "registry", "verify", "--repair", "--registry", path).stdout
    assert "is repaired" in shown
    assert "records       1001   ?" in shown


class Counted(bytes):
    """Bytes that count how often a part of them is asked for."""

    asked = 0

    def __getitem__(self, part):
        Counted.asked += 1
        return super().__getitem__(part)


def test_rows_that_claim_the_same_pages_are_not_read_without_end():
    """Every cell of every page says that its row is as long as the file."""
    size, count, cells = 4096, 60, 1000
    least = (size - 12) * 32 // 255 - 23
    length = least + (size - 4) * (count - 5)  # of which so much is on the page itself
    pages = [bytearray(size) for _ in range(count)]
    for number, page in enumerate(pages, 1):
        if number % 2:  # an overflow page, and the number of the next one
            struct.pack_into(">I", page, 0, number % count + 1 | 1)
            continue
        page[0], at = 0x0D, 3000
        struct.pack_into(">BHHHB", page, 0, 0x0D, 0, cells, 0, 0)
        struct.pack_into(f">{cells}H", page, 8, *[at] * cells)
        varint = [length >> 14 | 0x80, length >> 7 & 0x7F | 0x80, length & 0x7F]
        page[at : at + 4] = bytes([*varint, 5])
        struct.pack_into(">I", page, at + 4 + least, 3)
    assert list(Pages(Counted(b"".join(pages)), size).rows()) == []
    assert Counted.asked < 20 * count
