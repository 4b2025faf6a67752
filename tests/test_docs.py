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
def test_python_prints_what_the_next_block_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `text` block right after a `python` block is its output. Files go to an empty folder."""
    monkeypatch.chdir(tmp_path)
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


def anchors(path: Path) -> set[str]:
    """What a link may name behind `#`: the headings of a page, as code hosts spell them."""
    text = BLOCK.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@page
def test_links_lead_to_headings(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text)
    missing = [
        f"{target}#{anchor}"
        for target, anchor in links
        if anchor not in anchors(page.parent / target if target else page)
    ]
    assert missing == []


def test_the_readme_leads_to_every_page_and_every_room() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = [f"docs/{path.name}" for path in PAGES[1:]]
    rooms = [
        path.parent.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "src" / "nethook").glob("*/README.md"))
    ]
    assert len(rooms) > 10
    assert [path for path in pages if f"]({path})" not in text] == []
    assert [room for room in rooms if f"]({room}/README.md)" not in text] == []


def test_every_error_is_on_its_page() -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    kinds = [value for value in vars(errors).values() if isinstance(value, type)]
    assert len(kinds) > 5
    assert [
        kind.__name__
        for kind in kinds
        if f"`{kind.__name__}`" not in text and f".{kind.__name__}`" not in text
    ] == []


@page
def test_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    folders = r"(?:benchmarks|docs|examples|src|tests|tools|zoo)"
    named = re.findall(rf"(?<![\w/.]){folders}/[\w/-]+\.(?:py|md|svg|cpp)\b", text)
    named += [f"src/{name}" for name in re.findall(r"`(nethook/[\w/]+\.py)`", text)]
    assert [name for name in named if not (ROOT / name).exists()] == []


def named_files(text: str) -> list[Path]:
    """The source files that a page names; a name without a folder is beside the one before it."""
    package = ROOT / "src" / "nethook"
    files: list[Path] = []
    for name in re.findall(r"`([\w/]+\.(?:py|cpp|h|js))`", text):
        if name.startswith(("tests/", "tools/", "zoo/")):
            files.append(ROOT / name)
        elif "/" in name or (package / name).exists():
            files.append(package / name)
        else:
            files.append(files[-1].parent / name)
    return files


def test_the_walks_of_the_architecture_page_lead_through_files_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    files = named_files(text)
    assert len(files) > 60
    assert [str(path) for path in files if not path.exists()] == []


def test_the_architecture_page_shows_every_room() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = next(code for _, code in BLOCK.findall(text))
    package = ROOT / "src" / "nethook"
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}
    files = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    assert rooms | files == set(re.findall(r"\w+", picture)) & (rooms | files)
    assert set(re.findall(r"(\w+)/", picture)) == rooms
