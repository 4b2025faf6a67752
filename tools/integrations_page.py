"""Writes the tables of docs/integrations.md from what was tested: build/integrations.json.

    make trainers && python -m tools.integrations_page

`make trainers` and `make trackers` write that file. It is a list of rows, one for each library:

    {"kind": "trainer", "name": "Keras", "version": "3.15.1", "gets": "…", "passed": true}

A kind that is not in the file keeps the table that the page has.
"""

# ruff: noqa: T201  (a program that prints for people)

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "integrations.md"
ROWS: Final = ROOT / "build" / "integrations.json"
KINDS: Final = ("trainer", "tracker")


def add_rows(rows: Iterable[Mapping[str, Any]], path: Path = ROWS) -> None:
    """Puts rows into the file, in place of earlier ones of the same kind and name."""
    kept = {(row["kind"], row["name"]): row for row in read_rows(path)}
    kept |= {(row["kind"], row["name"]): dict(row) for row in rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    ordered = [kept[key] for key in sorted(kept)]
    path.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_rows(path: Path = ROWS) -> list[dict[str, Any]]:
    """The rows of the file; none where there is no file."""
    return list(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else []


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows of one kind. Only what has passed is claimed."""
    lines = ["| | version tested | what you get |", "| --- | --- | --- |"]
    for row in sorted(rows, key=lambda row: str(row["name"]).lower()):
        gets = row["gets"] if row["passed"] else "not working: its tests fail"
        lines.append(f"| {row['name']} | {row['version']} | {gets} |")
    return "\n".join(lines)


def page(text: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The page with the tables of these rows."""
    for kind in KINDS:
        mine = [row for row in rows if row["kind"] == kind]
        begin = f"<!-- {kind}s: written by tools/integrations_page.py -->"
        found = re.search(f"{re.escape(begin)}\n.*?<!-- end -->", text, re.DOTALL)
        if mine and found:
            text = text.replace(found[0], f"{begin}\n\n{table(mine)}\n\n<!-- end -->")
    return text


def main() -> int:
    """Brings the page up to date."""
    rows = read_rows()
    if not rows:
        print(f"There is no {ROWS.relative_to(ROOT)}: run `make trainers` first.")
        return 1
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
