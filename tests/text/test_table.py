"""A table as text and as HTML."""

from __future__ import annotations

import html
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nethook.text.table import Table

TABLE = Table(
    "2 sites", ("address", "shape", "calls"), [("fc1", "2 × 3", "1"), ('""', "", "12")],
    right=frozenset(["calls"]),
)  # fmt: skip
PADDED = "padding:2px 8px;"


def test_text_is_aligned_and_has_no_trailing_spaces():
    assert TABLE.text().split("\n") == [
        "2 sites",
        "address  shape  calls",
        "───────  ─────  ─────",
        "fc1      2 × 3      1",
        '""                 12',
    ]
    left = Table("t", ("a", "b"), [("x", ""), ("long", "y")])
    assert left.text() == "t\na     b\n────  ─\nx\nlong  y"


def test_a_table_without_rows_is_its_title():
    empty = Table("nothing <here>", ("a",), [])
    assert empty.text() == "nothing <here>"
    assert empty.html() == "<div><b>nothing &lt;here&gt;</b></div>"


def test_html_says_the_same_cells():
    root = ET.fromstring(f"<html>{TABLE.html()}</html>")
    cells = [[cell.text or "" for cell in row] for row in root.iter("tr")]
    assert cells == [list(TABLE.columns), *(list(row) for row in TABLE.rows)]
    assert [cell.get("style") for cell in root.iter("th")] == [
        f"{PADDED}text-align:left", f"{PADDED}text-align:left", f"{PADDED}text-align:right",
    ]  # fmt: skip


def test_a_name_cannot_write_html():
    evil = '<script>alert("&")</script>'
    shown = Table(evil, (evil,), [(evil,)], frozenset([evil])).html()
    assert "<script" not in shown
    assert shown.count(html.escape(evil)) == 3


@given(st.lists(st.text(max_size=8), min_size=1, max_size=3), st.text(max_size=8))
def test_text_has_one_line_a_row_whatever_the_cells_hold(cells, column):
    lines = Table("title", (column,), [(cell,) for cell in cells]).text().split("\n")
    assert len(lines) == 3 + len(cells)
    assert all(line.isprintable() for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_a_control_character_is_shown_and_not_sent():
    assert "a\\x1b[2Jb" in Table("t", ("name",), [("a\x1b[2Jb",)]).text()


@pytest.mark.parametrize(("rows", "lines"), [(60, 60), (61, 61), (1000, 61)])
def test_the_middle_of_a_long_table_is_left_out_and_counted(rows, lines):
    table = Table("t", ("n", "m"), [(str(i), "x") for i in range(rows)])
    text = table.text().splitlines()[3:]
    assert len(text) == lines
    assert text[0].split()[0] == "0"
    assert text[-1].split()[0] == str(rows - 1)
    if rows > 60:
        assert text[30] == f"… {rows - 60} more"
        assert f"… {rows - 60} more" in table.html()
    assert len(table.rows) == rows


def test_backticks_are_code_in_html_and_stay_in_text():
    table = Table("of `Net`", ("what",), [("between `a<b>` and `c`",), ("a lone ` mark",)])
    assert ">between <code>a&lt;b&gt;</code> and <code>c</code></td>" in (table.html())
    assert "a lone ` mark" in table.html()
    assert "of <code>Net</code>" in table.html()
    assert "between `a<b>` and `c`" in table.text()


def test_cells_are_apart_where_a_viewer_has_no_stylesheet():
    cells = re.findall(r"<t[hd] [^>]*>", TABLE.html())
    assert cells
    assert all(PADDED in cell for cell in cells)
