"""The documentation as a site: it builds, every link leads somewhere, and nothing is fetched."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "zensical.toml"
# What the theme's script would load from a CDN where a page has such an element.
LOADED_ON_DEMAND = ("mermaid", "glightbox", "pyodide", "ace")


@dataclass
class Page(HTMLParser):
    """A page: its links, what it loads, its anchors and the classes of its elements."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors.add(found.get("id", ""))
        self.classes.update(found.get("class", "").split())
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(found.get("href", ""))
        self.loads += [found[name] for name in ("src", "srcset", "poster") if name in found]


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def built(folder: Path) -> subprocess.CompletedProcess[str]:
    """Builds what is in a folder, strictly."""
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """Every page of the site, by its path."""
    folder = tmp_path_factory.mktemp("site").resolve()
    shutil.copy(CONFIG, folder)
    shutil.copytree(ROOT / "docs", folder / "docs")
    for name in ("examples", "src", "tests"):  # which pages show parts of
        (folder / name).symlink_to(ROOT / name)
    done = built(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return {path: read(path) for path in sorted((folder / "build/site").rglob("*.html"))}


def elsewhere(url: str) -> bool:
    return bool(urlsplit(url).netloc)


def test_every_page_of_the_docs_is_in_it_and_in_the_menu(site: dict[Path, Page]) -> None:
    docs = ROOT / "docs"
    sources = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    folder = next(iter(site)).parents[0]
    pages = {path.relative_to(folder).with_suffix(".md").as_posix() for path in site}
    assert sources <= pages
    assert set(menu(tomllib.loads(CONFIG.read_text(encoding="utf-8"))["project"]["nav"])) == sources


def menu(entries: object) -> Iterator[str]:
    """The pages that a menu names."""
    if isinstance(entries, str):
        yield entries
    elif isinstance(entries, list):
        for entry in entries:
            yield from menu(entry)
    elif isinstance(entries, dict):
        yield from menu(list(entries.values()))


def test_nothing_is_loaded_from_elsewhere(site: dict[Path, Page]) -> None:
    found = {
        path.name: [url for url in page.loads if elsewhere(url)] for path, page in site.items()
    }
    assert {name: urls for name, urls in found.items() if urls} == {}
    folder = next(iter(site)).parents[0]
    styles = [path.read_text(encoding="utf-8") for path in folder.rglob("*.css")]
    assert styles
    assert [
        url for text in styles for url in re.findall(r"url\(\W*(?:https?:)?//[^)]*", text)
    ] == []
    assert not any(re.search(r"@import\s+\W*(?:https?:)?//", text) for text in styles)


def test_no_page_has_what_the_theme_would_load_a_script_for(site: dict[Path, Page]) -> None:
    used = set().union(*(page.classes for page in site.values()))
    assert used
    assert used & set(LOADED_ON_DEMAND) == set()


def test_every_link_leads_to_a_file_and_an_anchor(site: dict[Path, Page]) -> None:
    missing = []
    for path, page in site.items():
        if path.name == "404.html":  # its paths are those of a server
            continue
        for url in (*page.links, *page.loads):
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            anchors = site[target].anchors if target in site else {anchor}
            if not target.exists() or (anchor and anchor not in anchors):
                missing.append(f"{path.name}: {url}")
    assert missing == []


def test_a_broken_link_fails(tmp_path: Path) -> None:
    """What `--strict` is there for."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# A\n\n[gone](gone.md)\n")
    (tmp_path / "zensical.toml").write_text('[project]\nsite_name = "a"\n')
    done = built(tmp_path)
    assert done.returncode != 0
    assert "page does not exist" in done.stderr
    assert "strict" in done.stderr
