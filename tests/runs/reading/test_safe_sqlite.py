"""Files from strangers: what is not a run is refused, and nothing in a file is ever run."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import nethook
from nethook.errors import NotARunError, RunFileError
from nethook.runs.format.schema import TABLES, VERSION
from nethook.runs.reading.rank_file import RankFile
from nethook.runs.reading.safe_sqlite import GuardedFile
from tests.runs.made import write_run

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("guard") / "run.db"
    writer = write_run(path, 40, close=False)
    writer.event("hello", 3, "a message", "layer0", {"a": 1})
    writer.loss("loss", 3, {"kind": "NllLoss"})
    writer.findings([{"code": "dead-units", "severity": "warning"}])
    writer.close()
    return path


@pytest.fixture
def path(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(original, tmp_path / "run.db"))


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def read_everything(path: Path) -> str:
    """Ask a run for all that it has; what it says, as one text."""
    with nethook.open_run(path) as run:
        said = [repr(run), run.info, run.ranks, run.sites, run.catalogue, run.events, run.losses]
        said += [
            run.findings,
            run.snapshots,
            dict(run.scalars),
            run.overview(),
            run.overview(points=1),
        ]
        for info in run.catalogue:
            key = (info.address, info.quantity)
            said += [run.series(*key), run.histograms(*key), run.units(*key), run.quantiles(*key)]
    return "\n".join(map(str, said))


def test_a_good_file_is_read(path: Path) -> None:
    assert "NllLoss" in read_everything(path)


def test_reading_changes_nothing_and_leaves_nothing(path: Path) -> None:
    before = path.read_bytes()
    read_everything(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


# What is no run


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty: no run was ever written to it"),
        (b"hello", "does not begin as a SQLite file does"),
        (b"SQLite format 3\x00", "does not begin as a SQLite file does"),
        (b"\x80\x04\x95" + bytes(200), "does not begin as a SQLite file does"),  # a pickle
        (b"SQLite format 3\x00" + bytes(5000), "is damaged or not a run of nethook"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "x.db").write_bytes(content)
    with pytest.raises(NotARunError, match=words) as caught:
        nethook.open_run(tmp_path / "x.db")
    assert isinstance(caught.value, ValueError)


def test_another_database_is_refused(tmp_path: Path) -> None:
    change(tmp_path / "x.db", "CREATE TABLE t (a)")
    with pytest.raises(NotARunError, match="is a SQLite file, but not a run of nethook"):
        nethook.open_run(tmp_path / "x.db")


def test_a_newer_file_is_refused_with_what_to_type(path: Path) -> None:
    change(path, f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(NotARunError) as caught:
        nethook.open_run(path)
    assert str(caught.value) == (
        f"{str(path)!r} was written by a newer nethook: it has version {VERSION + 1} of the run "
        f"file, and this nethook reads up to {VERSION}. Update it: pip install -U nethook."
    )


@pytest.mark.parametrize("version", [0, -5])
def test_a_version_that_never_was(path: Path, version: int) -> None:
    change(path, f"PRAGMA user_version = {version}")
    with pytest.raises(NotARunError, match="no version that nethook ever wrote"):
        nethook.open_run(path)


def test_a_folder_and_a_pipe_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    (tmp_path / "folder.db").mkdir()
    for name in ("pipe.db", "folder.db"):
        with pytest.raises(NotARunError, match="is not a file"):
            nethook.open_run(tmp_path / name)


# Code in a file

RECURSION = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT x FROM r"


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM info; END"],
        [f"CREATE VIEW v AS {RECURSION}"],
        ["DROP TABLE findings", f"CREATE VIEW findings AS {RECURSION}"],
        ["DROP TABLE events", "CREATE VIEW events AS SELECT * FROM info"],
        ["CREATE TABLE extra (a)"],
        ["CREATE INDEX i ON events (lower(message))"],
        ["DROP TABLE losses", "CREATE TABLE losses (id INTEGER PRIMARY KEY)"],
        ["ALTER TABLE events ADD COLUMN g AS (zeroblob(1000000000))"],
        ["DROP TABLE findings", "CREATE VIRTUAL TABLE findings USING fts5(code)"],
        ["DROP TABLE windows"],
    ],
)
def test_anything_besides_the_tables_is_refused(path: Path, statements: list[str]) -> None:
    change(path, *statements)
    with pytest.raises(NotARunError, match=r"refused|damaged"):
        nethook.open_run(path)


def test_a_run_with_code_in_it_is_not_continued_either(path: Path) -> None:
    change(path, "CREATE TRIGGER t AFTER INSERT ON info BEGIN DELETE FROM events; END")
    with pytest.raises(NotARunError, match="has a trigger 't'"):
        write_run(path, resume=True)


def test_an_endless_query_is_stopped(path: Path) -> None:
    file = GuardedFile(path, timeout=0.2)
    with pytest.raises(RunFileError, match=r"took longer than 0\.2 seconds"):
        file.rows(f"SELECT max(x) FROM ({RECURSION})", most=1)
    assert file.rows("SELECT count(*) FROM info", most=1)  # and it can be asked again
    file.close()


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM info", "ATTACH 'x' AS y", "PRAGMA journal_mode = DELETE; SELECT 1", "VACUUM"],
)
def test_nothing_can_be_written_through_a_reader(path: Path, statement: str) -> None:
    before = path.read_bytes()
    file = GuardedFile(path)
    with pytest.raises((RunFileError, sqlite3.Error)):
        file.rows(statement, most=1)
    file.close()
    assert path.read_bytes() == before


# Sizes


@pytest.mark.parametrize("table", ["records", "histograms", "unit_bits", "scalars"])
def test_a_huge_blob_is_refused_before_it_is_read(path: Path, table: str) -> None:
    change(
        path,
        f"UPDATE {table} SET data = zeroblob(50000000) WHERE key = (SELECT max(key) FROM {table})",
    )
    with pytest.raises(RunFileError):
        read_everything(path)


def test_a_huge_text_is_refused(path: Path) -> None:
    change(path, "UPDATE info SET value = '\"' || hex(zeroblob(5000000)) || '\"' WHERE key = 'git'")
    with pytest.raises(RunFileError, match="too big"):
        nethook.open_run(path).info


def test_more_rows_than_a_run_has_are_refused(path: Path) -> None:
    change(
        path,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
        "INSERT INTO info SELECT 'k' || i, '1' FROM n",
    )
    with pytest.raises(NotARunError, match="more than 10,000 rows where no run does"):
        nethook.open_run(path).info


# Contents


def test_control_characters_in_every_text_are_harmless(path: Path) -> None:
    connection = sqlite3.connect(path)
    for table in TABLES:
        for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})").fetchall():
            if kind == "TEXT" and (table, name) not in {("info", "key"), ("info", "value")}:
                json_text = name in ("info", "data")
                bad = '{"\\u001b[2J": "\\u0007\\u202e"}' if json_text else "\x1b[2J\x07\u202e\x9b"
                bad = (
                    bad if json_text else f"{bad}' || {'id' if table != 'windows' else 'key'} || '"
                )
                connection.execute(f"UPDATE {table} SET {name} = '{bad}'")
    connection.execute("INSERT INTO info VALUES ('\x1b[31m', '\"\\u001b[0m\"')")
    connection.commit()
    connection.close()
    said = read_everything(path)
    assert "\\u001b[2J" in said
    assert not CONTROL.search(said)


def columns() -> Iterator[tuple[str, str]]:
    connection = sqlite3.connect(":memory:")
    for table, statement in TABLES.items():
        connection.execute(statement)
        for _, name, *_ in connection.execute(f"PRAGMA table_info({table})"):
            yield table, name
    connection.close()


@pytest.mark.parametrize(("table", "column"), list(columns()))
@pytest.mark.parametrize(
    "value", ["'text'", "x'00ff'", "-1", "9e999", "9223372036854775807", "'{}'"]
)
def test_a_wrong_value_anywhere_is_read_or_refused(
    path: Path, table: str, column: str, value: str
) -> None:
    try:
        change(
            path,
            f"UPDATE {table} SET {column} = {value} WHERE rowid = (SELECT max(rowid) FROM {table})",
        )
    except sqlite3.Error:
        return  # SQLite itself does not take it, so no file can hold it
    try:
        said = read_everything(path)
    except (RunFileError, KeyError) as error:  # a series may be gone by its name
        said = str(error)
    assert not CONTROL.search(said)


def test_flipped_bytes_are_read_or_refused(path: Path, tmp_path: Path) -> None:
    good = path.read_bytes()
    random = np.random.default_rng(0)
    refused = 0
    for turn in range(60):
        broken = bytearray(good)
        for place in random.integers(0, len(good), 1 + 20 * (turn % 3)):
            broken[place] ^= random.integers(1, 256)
        file = tmp_path / f"broken{turn}.db"
        file.write_bytes(broken)
        try:
            read_everything(file)
        except (RunFileError, KeyError):
            refused += 1
    assert refused > 5


@pytest.mark.parametrize("part", [0.01, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused_or_read(path: Path, part: float) -> None:
    good = path.read_bytes()
    whole = nethook.open_run(path).series("layer0").rows
    path.write_bytes(good[: int(len(good) * part)])
    try:
        read_everything(path)
    except RunFileError:
        return
    # The last page may be one that holds nothing; then nothing is missing.
    assert part > 0.99
    assert np.array_equal(nethook.open_run(path).series("layer0").rows, whole, equal_nan=True)


def test_what_was_truncated_is_not_continued(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(RunFileError):
        write_run(path, resume=True)


def test_windows_out_of_order_are_refused(path: Path) -> None:
    change(path, "DELETE FROM windows WHERE key = 5")
    with pytest.raises(NotARunError, match="windows that are not in order"):
        nethook.open_run(path).series("layer0")


def test_records_that_are_swapped_between_blocks_do_no_harm(path: Path) -> None:
    change(path, "UPDATE records SET data = (SELECT data FROM histograms LIMIT 1)")
    with pytest.raises(NotARunError):
        nethook.open_run(path).series("layer0")


def test_a_file_that_is_replaced_is_read_anew(path: Path, tmp_path: Path) -> None:
    run = nethook.open_run(path)
    assert len(run.series("layer0")) == 40
    write_run(tmp_path / "other.db", 7)
    (tmp_path / "other.db").replace(path)
    assert len(run.series("layer0")) == 7
    path.unlink()
    with pytest.raises(FileNotFoundError):
        run.series("layer0")


def test_one_reader_serves_many_threads(path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    file = RankFile(path)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: len(file.windows("train")), range(40)))
    assert found == [40] * 40
    file.close()


def test_no_pickle_and_no_code_in_this_room() -> None:
    room = Path(nethook.__file__).parent / "runs"
    source = "\n".join(file.read_text(encoding="utf-8") for file in room.rglob("*.py"))
    assert not re.search(r"^\s*(import|from) (pickle|marshal|shelve|dill)", source, re.MULTILINE)
    assert not re.search(r"\b(eval|exec)\(|allow_pickle=True|load_extension", source)


# Other files in the same folder


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "nowhere"])
@pytest.mark.parametrize("live", [False, True])
def test_what_lies_beside_a_run_is_not_trusted(
    path: Path, tmp_path: Path, end: str, kind: str, live: bool
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious" * 5000)
    if live and end != "-wal":
        Path(f"{path}-wal").write_bytes(b"")  # SQLite then looks at the others, too
    beside = Path(f"{path}{end}")
    if kind == "folder":
        beside.mkdir()
    elif kind == "pipe":
        os.mkfifo(beside)
    else:
        beside.symlink_to(victim if kind == "link" else tmp_path / "nowhere")
    assert "NllLoss" in read_everything(path)
    assert victim.read_bytes() == b"precious" * 5000
    assert not (tmp_path / "nowhere").exists()


def test_a_link_that_leads_elsewhere_by_now(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with nethook.open_run(link) as run:
        sites = run.sites
        (tmp_path / "moved").mkdir()
        moved = path.rename(tmp_path / "moved" / "run.db")
        link.unlink()
        link.symlink_to(moved)
        assert run.sites == sites
        os.utime(moved)  # which has it opened again
        assert run.sites == sites


def test_a_rank_that_is_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    """What lies beside a run was not asked for, and may lead to anywhere."""
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.copy(path, outside / "other.db")
    (tmp_path / "run.rank1.db").symlink_to(outside / "other.db")
    os.mkfifo(tmp_path / "run.rank2.db")
    (tmp_path / "run.rank3.db").mkdir()
    run = nethook.open_run(path)
    assert [rank.state for rank in run.ranks] == ["finished"] + 3 * ["unreadable"]
    assert all("is not a regular file" in rank.problem for rank in run.ranks[1:])
    run.close()
    # By its own name it is asked for, and opened.
    linked = nethook.open_run(tmp_path / "run.rank1.db")
    assert linked.ranks[1].state == "finished"
    linked.close()


def test_a_number_of_ranks_beyond_all_machines(path: Path, tmp_path: Path) -> None:
    (tmp_path / "run.rank99999999999.db").touch()
    change(path, "UPDATE info SET value = '999999999999' WHERE key = 'world_size'")
    assert nethook.open_run(path).world_size == 1 << 16


@pytest.mark.parametrize(
    "name", ["a\0b.db", "x" * 300 + ".db", "x" * 253, "no/such/folder/x.db", "run.db/x.db"]
)
def test_a_name_that_nothing_has(path: Path, name: str) -> None:
    with pytest.raises(RunFileError):
        nethook.open_run(path.with_name(name) if "/" not in name else path.parent / name)


def test_a_folder_that_may_not_be_looked_at_is_said(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert len(nethook.open_run(path).ranks) == 1


def test_a_path_that_sqlite_does_not_open_is_said(path: Path) -> None:
    deep = path.parent.joinpath(*["d" * 100] * 5)
    deep.mkdir(parents=True)
    shutil.copy(path, deep / "a.db")
    with pytest.raises(RunFileError, match="more than 504 bytes, which SQLite does not open"):
        nethook.open_run(deep / "a.db")


def test_a_wal_of_holes_is_not_copied(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path(f"{path}-wal").open("wb") as stream:
        stream.truncate(1 << 42)
    os.mkfifo(f"{path}-shm")
    with pytest.raises(RunFileError, match="no room for a copy"):
        nethook.open_run(path)
