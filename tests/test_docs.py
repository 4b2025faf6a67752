"""The Python of the README and the docs runs, and prints what they show; every link leads on."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from nethook import errors

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)


def stripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


@page
def test_python_prints_what_the_next_block_shows(page: Path) -> None:
    """A `text` block right after a `python` block is its output."""
    names: dict[str, object] = {"__name__": page.stem}
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    for index, (language, code) in enumerate(found):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{page.name}, block {index}", "exec"), names)
        following = found[index + 1] if index + 1 < len(found) else ("", "")
        shown = following[1] if following[0] == "text" else ""
        assert stripped(printed.getvalue()) == stripped(shown)


def test_some_pages_hold_python() -> None:
    texts = [path.read_text(encoding="utf-8") for path in PAGES]
    assert sum("```python" in text for text in texts) >= 3


@page
def test_links_lead_to_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)", text) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


def test_every_error_is_on_its_page() -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    kinds = [value for value in vars(errors).values() if isinstance(value, type)]
    assert len(kinds) > 5
    assert [
        kind.__name__
        for kind in kinds
        if f"`{kind.__name__}`" not in text and f".{kind.__name__}`" not in text
    ] == []
