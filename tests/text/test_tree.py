"""A tree as text, as HTML and for Rich."""

from __future__ import annotations

import html
import io
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from nethook.text.tree import Branch, TreeView


def leaf(name: str) -> Branch:
    return Branch((name, ""))


SMALL = TreeView(
    "three",
    ("what", "size"),
    (Branch(("a", "1"), (leaf("b"), Branch(("c", "22"), (leaf("d"),)))), leaf("e")),
)


def test_text_has_guides_and_aligned_columns() -> None:
    assert SMALL.text().split("\n") == [
        "three",
        "what     size",
        "───────  ────",
        "a        1",
        "├─ b",
        "└─ c     22",
        "   └─ d",
        "e",
    ]
    assert TreeView("none", ("what",), ()).text() == "none"


def test_what_is_too_deep_is_folded_and_says_how_much() -> None:
    folded = TreeView(SMALL.title, SMALL.columns, SMALL.branches, rows=4)
    assert "└─ c  (+1 below)" in folded.text()
    assert "d" not in folded.text().replace("below", "").split("c")[1]
    folded = TreeView(SMALL.title, SMALL.columns, SMALL.branches, rows=2)
    assert "a  (+3 below)" in folded.text()


def test_what_is_too_long_is_cut_in_the_middle_and_says_how_much() -> None:
    many = tuple(Branch((f"n{at}",), (Branch(("x",)),)) for at in range(1000))
    text = TreeView("many", ("what",), many, rows=10).text()
    assert "… 1,980 more" in text
    assert "n4  (+1 below)\n" in text
    assert "n995  (+1 below)" in text
    assert len(TreeView("many", ("what",), many, rows=None).text().splitlines()) == 2003


def test_rich_prints_every_row() -> None:
    console = Console(width=60, record=True, file=io.StringIO())
    console.print(SMALL.rich())
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert lines == ["three", "├── a  1", "│   ├── b", "│   └── c  22", "│       └── d", "└── e"]


names = st.text(max_size=8)
branches = st.recursive(
    st.builds(lambda a, b: Branch((a, b)), names, names),
    lambda inner: st.builds(
        lambda a, b, below: Branch((a, b), tuple(below)), names, names, st.lists(inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.lists(branches, min_size=1, max_size=5), st.integers(2, 20))
def test_every_row_is_one_line_and_html_is_escaped(found: list[Branch], rows: int) -> None:
    view = TreeView("t", ("a", "b"), tuple(found), rows=None)
    assert len(view.text().split("\n")) == 3 + sum(branch.size() for branch in found)
    cut = TreeView("t", ("a", "b"), tuple(found), rows=rows)
    assert len(cut.text().split("\n")) <= 3 + max(rows + 1, len(found) if len(found) <= rows else 0)
    # What is left after unescaping is what was put in; no tag comes from a cell.
    text = view.html()
    assert text.count("<") == text.count(">")
    assert text.count("<details") == sum(_with_children(branch) for branch in found)
    clean = "".join(char for char in text if char.isprintable() and ord(char) < 0xD800)
    ET.fromstring(f"<html>{clean.replace(' open ', ' ')}</html>")
    assert html.escape(found[0].cells[0]) in text


def _with_children(branch: Branch) -> int:
    return bool(branch.children) + sum(_with_children(child) for child in branch.children)
