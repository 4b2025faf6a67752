"""The Python of the README and the docs runs, and prints what they show; every link leads on."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import nethook
from nethook import errors
from tests.documents import agree, blocks, commands, printed_by, without_blocks
from tests.running.both import Warm

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
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
    found = blocks(page.read_text(encoding="utf-8"))
    for index, block in enumerate(found):
        if block.language != "python" or block.title:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.text, f"{page.name}, block {index}", "exec"), names)
        following = found[index + 1] if index + 1 < len(found) else None
        shown = following.text if following and following.language == "text" else ""
        if "\n…\n" in shown:
            assert agree(shown, printed.getvalue()), printed.getvalue()
        else:
            assert stripped(printed.getvalue()) == stripped(shown)


CONSOLES = [path for path in PAGES if "```console" in path.read_text(encoding="utf-8")]


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    """A process that has imported torch already, and forks for each command."""
    process = Warm()
    yield process
    process.stop()


@pytest.mark.parametrize("page", CONSOLES, ids=lambda path: path.name)
def test_commands_print_what_is_shown(
    page: Path, tmp_path: Path, warm: Warm, request: pytest.FixtureRequest
) -> None:
    """Words are compared, numbers are not: times and last digits differ between machines."""
    text = page.read_text(encoding="utf-8")
    now = text
    folder = tmp_path / "project"
    folder.mkdir()
    for block in blocks(text):
        if block.title:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        if block.language != "console":
            continue
        shell = list(commands(block.text))
        printed = [(line, shown, printed_by(line, folder, warm)) for line, shown in shell]
        if request.config.getoption("--overwrite") and "\n…\n" not in block.text:
            whole = "\n".join(f"$ {line}\n{each.rstrip()}\n" for line, _, each in printed)
            now = now.replace(block.text, whole)
            continue
        for line, shown, each in printed:
            assert agree(shown, each), f"{line} prints:\n{each}"
    if now != text:
        page.write_text(now, encoding="utf-8")


def test_some_pages_hold_commands() -> None:
    assert ROOT / "README.md" in CONSOLES
    assert len(CONSOLES) >= 2


def test_some_pages_hold_python() -> None:
    texts = [path.read_text(encoding="utf-8") for path in PAGES]
    assert sum("```python" in text for text in texts) >= 3


@page
def test_links_lead_to_files(page: Path) -> None:
    text = without_blocks(page.read_text(encoding="utf-8"))
    targets = [target for target in re.findall(r"\]\(([^)#]+)", text) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


def anchors(path: Path) -> set[str]:
    """What a link may name behind `#`: the headings of a page, as code hosts spell them."""
    text = without_blocks(path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@page
def test_links_lead_to_headings(page: Path) -> None:
    text = without_blocks(page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text)
    missing = [
        f"{target}#{anchor}"
        for target, anchor in links
        if anchor not in anchors(page.parent / target if target else page)
    ]
    assert missing == []


def linked(page: Path) -> set[Path]:
    """The files that a page links to."""
    text = without_blocks(page.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)#:]+)", text)
    return {(page.parent / target).resolve() for target in targets}


def test_the_start_page_leads_to_every_page() -> None:
    start = ROOT / "docs" / "index.md"
    assert start in linked(ROOT / "README.md")
    assert [path.name for path in PAGES[2:] if path not in {start, *linked(start)}] == []


def test_contributing_leads_to_every_room() -> None:
    rooms = sorted((ROOT / "src" / "nethook").glob("*/README.md"))
    assert len(rooms) > 10
    leads_to = linked(ROOT / "CONTRIBUTING.md")
    assert [room.parent.name for room in rooms if room not in leads_to] == []


def test_every_error_is_on_its_page() -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    kinds = [value for value in vars(errors).values() if isinstance(value, type)]
    assert len(kinds) > 5
    assert [
        kind.__name__
        for kind in kinds
        if f"`{kind.__name__}`" not in text and f".{kind.__name__}`" not in text
    ] == []


def test_every_public_name_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^::: nethook\.([\w.]+)$", text, re.MULTILINE))
    types = {f"types.{name}" for name in nethook.types.__all__}
    own_pages = {"classic", "errors", "types"}
    also = {"types.Finding", "types.Inputs", "types.Plan"}  # nethook.Finding, nethook.init.Plan
    assert listed == {*nethook.__all__, *types} - own_pages - also


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
    picture = blocks(text)[0].text
    package = ROOT / "src" / "nethook"
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}
    files = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    assert rooms | files == set(re.findall(r"\w+", picture)) & (rooms | files)
    assert set(re.findall(r"(\w+)/", picture)) == rooms
