"""The Python of the README runs, and prints what the README shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in BLOCK.finditer(README.read_text(encoding="utf-8"))]


def stripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def test_python_prints_what_the_next_block_shows() -> None:
    """A `text` block right after a `python` block is its output."""
    names: dict[str, object] = {"__name__": "readme"}
    ran = 0
    found = blocks()
    for index, (language, code) in enumerate(found):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"README.md, block {index}", "exec"), names)
        following = found[index + 1] if index + 1 < len(found) else ("", "")
        shown = following[1] if following[0] == "text" else ""
        assert stripped(printed.getvalue()) == stripped(shown)
        ran += 1
    assert ran


def test_links_lead_to_files() -> None:
    text = README.read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)", text) if "://" not in target]
    assert targets
    missing = [target for target in targets if not (README.parent / target).exists()]
    assert missing == []
