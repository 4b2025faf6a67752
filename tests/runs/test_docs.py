"""The page on the run file says what is in the file, and its program reads it."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import numpy as np

import nethook
from nethook.runs.format.levels import SHOWN
from nethook.runs.format.records import COLUMNS
from nethook.runs.format.schema import APPLICATION_ID, PHASES, TABLES, VERSION
from tests.runs.made import write_run

PAGE = (Path(__file__).parents[2] / "docs" / "run-file.md").read_text(encoding="utf-8")


def test_every_table_and_column_is_described() -> None:
    connection = sqlite3.connect(":memory:")
    described = {
        row[0]: row[1] for row in re.findall(r"^\| `(\w+)` \| (.+?) \|", PAGE, re.MULTILINE)
    }
    for table, statement in TABLES.items():
        connection.execute(statement)
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        assert re.findall(r"`(\w+)`", described[table]) == columns
    connection.close()


def test_every_field_and_phase_is_described() -> None:
    for name in (*COLUMNS, *SHOWN, *PHASES):
        assert f"`{name}`" in PAGE, name
    assert f"0x{APPLICATION_ID:X}" in PAGE
    assert f"version of the schema: **{VERSION}**" in PAGE


def test_everything_in_info_is_described(tmp_path: Path) -> None:
    write_run(tmp_path / "a.db", 3)
    connection = sqlite3.connect(tmp_path / "a.db")
    for (name,) in connection.execute("SELECT key FROM info").fetchall():
        assert f"`{name}`" in PAGE, name
    connection.close()


def test_the_program_on_the_page_reads_a_record(tmp_path: Path) -> None:
    write_run(tmp_path / "a.db", 30)
    (program,) = re.findall(r"```python\n(import struct.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(program, names)
    connection = sqlite3.connect(tmp_path / "a.db")
    (data,) = connection.execute("SELECT data FROM records WHERE key = 7").fetchone()
    (overview,) = connection.execute("SELECT data FROM overviews LIMIT 1").fetchone()
    (steps,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    assert connection.execute(steps).fetchone() == (29, 29, 1)
    connection.close()
    table = names["unpack"](data)
    series = nethook.open_run(tmp_path / "a.db").series("layer2")
    assert table[2, 0] == 2
    assert table[2, 1 + COLUMNS.index("mean")] == series["mean"][7]
    assert table[2, 1 + COLUMNS.index("max")] == series["max"][7]
    assert names["unpack"](overview).shape == (3, 1 + 3 * len(SHOWN))
    assert np.isfinite(table).all()
