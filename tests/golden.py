"""Golden texts: what nethook prints, kept in files and compared as a whole.

    def test_a_tape(golden):
        golden("tape", repr(tape))          # tests/golden/tape.txt

`pytest --overwrite` writes the files again; `git diff` then shows what has changed for a reader.

A text must be the same with every torch and on every machine. Models have weights for which all
numbers are exact, and what differs from run to run is given a name with `replaced`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(__file__).with_name("golden")


@dataclass(frozen=True)
class Golden:
    """Compares texts with those in a folder, or writes them there."""

    overwrite: bool = False
    folder: Path = FOLDER

    def __call__(self, name: str, text: str) -> None:
        """Fail the test if `text` is not what the file `name` has."""
        path = self.folder / f"{name}.txt"
        now = _tidy(text)
        if self.overwrite:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(now, encoding="utf-8")
            return
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if now != before:
            lines = difflib.unified_diff(
                before.splitlines(), now.splitlines(), "golden", "now", lineterm=""
            )
            pytest.fail(
                f"{path.name} has another text. If the new one is right, run this test once with "
                "--overwrite and commit the file.\n\n" + "\n".join(lines),
                pytrace=False,
            )


def _tidy(text: str) -> str:
    """Without spaces at the ends of lines, which editors remove; one line end at the end."""
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n"


def replaced(text: str, names: Mapping[str, str]) -> str:
    """The text with a name for what differs from run to run: pattern to name, in order."""
    for pattern, name in names.items():
        text = re.sub(pattern, name, text)
    return text
