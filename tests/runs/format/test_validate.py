"""What is not a run of nethook is refused, with a message that says what it is."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from nethook.errors import NotARunError
from nethook.runs.format.schema import APPLICATION_ID, SINCE, TABLES, VERSION
from nethook.runs.format.validate import check_header, check_schema

PATH = Path("a.db")


OPEN = []
"""Databases of the test that runs."""


@pytest.fixture(autouse=True)
def closed():
    yield
    while OPEN:
        OPEN.pop().close()


def made(application=APPLICATION_ID, version=VERSION, tables=TABLES):
    connection = sqlite3.connect(":memory:")
    OPEN.append(connection)
    connection.execute(f"PRAGMA application_id = {application}")
    connection.execute(f"PRAGMA user_version = {version}")
    for statement in tables.values():
        connection.execute(statement)
    return connection


def refused(connection, words):
    with pytest.raises(NotARunError, match=words):
        check_schema(connection, PATH)


def test_a_run_is_taken():
    check_schema(made(), PATH)


def test_tables_as_they_are_written_are_compared_as_they_stand(monkeypatch):
    # A run of 1,000 ranks has its schema checked thousands of times.
    def slowly(sql):
        raise AssertionError(f"a pattern was looked for in {sql!r}")

    monkeypatch.setattr("nethook.runs.format.validate._spaceless", slowly)
    check_schema(made(), PATH)
    wide = {**TABLES, "info": TABLES["info"].replace(" ", "  ")}
    with pytest.raises(AssertionError, match="a pattern was looked for"):
        check_schema(made(tables=wide), PATH)


def test_white_space_in_a_table_does_not_matter():
    wide = {name: sql.replace(" ", " \n ") for name, sql in TABLES.items()}
    check_schema(made(tables=wide), PATH)


def test_an_older_one_may_lack_what_came_later():
    older = {name: sql for name, sql in TABLES.items() if name not in SINCE}
    check_schema(made(version=1, tables=older), PATH)
    refused(made(tables=older), "'a.db' does not have the table 'snapshots' as nethook writes it")


def test_spaces_in_a_statement_mean_nothing():
    spaced = {name: sql.replace(", ", ",\n  ") for name, sql in TABLES.items()}
    check_schema(made(tables=spaced), PATH)


def test_a_foreign_file_and_a_newer_one():
    refused(made(application=7), "'a.db' is a SQLite file, but not a run of nethook")
    refused(made(version=VERSION + 1), f"has version {VERSION + 1} of the run file.*pip install -U")
    refused(made(version=0), r"has no version that nethook ever wrote \(0\)")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("CREATE TABLE more (a)", "has a table 'more', which no run"),
        ("CREATE VIEW seen AS SELECT 1", "has a view 'seen'"),
        ("CREATE INDEX quick ON losses (step)", "has a index 'quick'"),
        (
            "CREATE TRIGGER fire AFTER INSERT ON events BEGIN DELETE FROM events; END",
            "has a trigger 'fire'",
        ),
        ("ALTER TABLE info ADD COLUMN more TEXT", "does not have the table 'info'"),
        ("DROP TABLE windows", "does not have the table 'windows'"),
    ],
)
def test_anything_besides_the_tables_of_a_run(statement, words):
    connection = made()
    connection.execute(statement)
    refused(connection, words)


def test_names_from_the_file_are_shown_without_control_characters():
    connection = made()
    connection.execute('CREATE TABLE "a\x1b[31m" (a)')
    with pytest.raises(NotARunError) as refusal:
        check_schema(connection, PATH)
    assert "\x1b" not in str(refusal.value)


def test_the_head_of_a_file(tmp_path):
    path = tmp_path / "b.db"
    path.write_bytes(b"")
    with pytest.raises(NotARunError, match="is empty: no run was ever written"):
        check_header(path)
    for head in (b"PK\x03\x04" * 50, b"SQLite format 3\x00" + b"\0" * 83):
        path.write_bytes(head)
        with pytest.raises(NotARunError, match="does not begin as a SQLite file does"):
            check_header(path)
    path.write_bytes(b"SQLite format 3\x00" + b"\0" * 84)
    check_header(path)
