"""Writes the tables of docs/compare.md from what was measured: build/peers.json.

    make bench-peers && python -m tools.peers_page

README.md gets the short table, where it has the marks for it. A part that is not in the file keeps
the table that the page has.
"""

# ruff: noqa: T201  (a program that prints for people)

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = (ROOT / "docs" / "compare.md", ROOT / "README.md")
MEASURED: Final = ROOT / "build" / "peers.json"
END: Final = "<!-- end -->"


def mark(part: str) -> str:
    """What stands above the table of a part."""
    return f"<!-- peers {part}: written by tools/peers_page.py -->"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def duration(seconds: float) -> str:
    """Three digits, in the unit that suits."""
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def name_of(way: str, said: Mapping[str, Any]) -> str:
    """A way with the version of its package."""
    plain = said["package"] in ("torch", "nethook") or not said["version"]
    return way if plain else f"{way} ({said['version']})"


def _answers(
    part: Mapping[str, Any], numbers: Mapping[str, Any], questions: Mapping[str, str]
) -> str:
    """A table of ways: what each took, and its answers. Ways that were left out come last."""
    rows, missing = [], []
    for way, said in part["ways"].items():
        if "left_out" in said:
            missing.append(f"Left out: {name_of(way, said)}: {said['left_out']}.")
            continue
        row = [name_of(way, said), *(str(number(said)) for number in numbers.values())]
        rows.append([*row, *(_cell(said["checks"][key]) for key in questions)])
    table = markdown(["", *numbers, *questions.values()], rows)
    return "\n\n".join([table, *missing])


def _cell(text: str) -> str:
    """An answer as it stands in a table; an error keeps its kind only."""
    return re.sub(r"^error: (\w+):.*", r"error (`\1`)", text).replace("|", "\\|")


def capture(part: Mapping[str, Any]) -> str:
    """Capture: time, memory, what was got wrong."""
    return _answers(
        part,
        {
            "time": lambda said: duration(said["seconds"]),
            "memory": lambda said: f"{said['megabytes']:.1f} MB",
        },
        {
            "values": "values",
            "output": "the model's output",
            "twice": "a layer called twice",
            "overwritten": "a value overwritten in place",
            "compiled": "a compiled model",
            "left": "left behind",
        },
    )


def watching(part: Mapping[str, Any]) -> str:
    """Watching: time against nobody, memory, what was got wrong."""
    ways = part["ways"]
    plain = ways["nobody watches"]
    per_step = plain["seconds"] / part["steps"]
    table = _answers(
        part,
        {
            "time": lambda said: f"{said['seconds'] / plain['seconds']:.2f}×",
            "by the clock": lambda said: f"{said['clock'] / plain['clock']:.2f}×",
            "memory": lambda said: f"{said['megabytes']:.1f} MB",
        },
        {
            "bytes": "on disk",
            "training": "the training itself",
            "left": "left behind",
            "nan": "one NaN in a gradient",
        },
    )
    return f"A step takes {duration(per_step)} where nobody watches.\n\n{table}"


def attribution(part: Mapping[str, Any]) -> str:
    """Attribution: a row per task and way."""
    rows = []
    for table in part["tables"]:
        for way, seconds in table["seconds"].items():
            rows.append(
                [table["title"], way, duration(seconds), f"{table['megabytes'][way]:.1f} MB"]
            )
    for number in range(len(rows) - 1, 0, -1):
        if rows[number][0] == rows[number - 1][0]:
            rows[number][0] = ""
    return markdown(["", f"captum {part['versions']['captum']}", "time", "memory"], rows)


def sweep(part: Sequence[Mapping[str, Any]]) -> str:
    """Sweeps: a row per way, a column per width."""
    versions = part[0]["versions"]
    packages = {"nnsight": "nnsight", "TransformerLens": "transformer-lens"}
    head = ["", *(f"width {table['width']}" for table in part)]
    rows = []
    for way in part[0]["seconds"]:
        version = f" ({versions[packages[way]]})" if packages.get(way) in versions else ""
        cells = [
            f"{duration(table['seconds'][way])} "
            f"({table['seconds']['hand loop'] / table['seconds'][way]:.1f})"
            for table in part
        ]
        rows.append([f"{way}{version}", *cells])
    return markdown(head, rows)


def short(measured: Mapping[str, Any]) -> str:
    """The README's table: one line per task that has been measured."""
    rows = []
    if "capture" in measured:
        ways = measured["capture"]["ways"]
        others = {way: said for way, said in ways.items() if "seconds" in said}
        mine = others.pop("nethook")
        said = ", ".join(f"{way} {duration(it['seconds'])}" for way, it in others.items())
        rows.append(["outputs of 12 blocks of a GPT-2", duration(mine["seconds"]), said])
    if "watching" in measured:
        ways = measured["watching"]["ways"]
        plain = ways["nobody watches"]["seconds"]
        others = {
            way: said
            for way, said in ways.items()
            if "seconds" in said and way != "nobody watches" and not way.startswith("nethook")
        }
        said = ", ".join(f"{way} {it['seconds'] / plain:.2f}×" for way, it in others.items())
        mine = ways["nethook"]["seconds"] / plain
        rows.append(["a training step that is watched", f"{mine:.2f}×", said])
    if "sweep" in measured:
        table = measured["sweep"][0]
        others = {
            way: seconds
            for way, seconds in table["seconds"].items()
            if not way.startswith("nethook")
        }
        said = ", ".join(f"{way} {duration(seconds)}" for way, seconds in others.items())
        cells = table["blocks"] * table["positions"]
        mine = duration(table["seconds"]["nethook batched"])
        rows.append([f"patching {cells} places of it", mine, said])
    return markdown(["", "nethook", "others"], rows)


PARTS: Final[dict[str, Callable[[Any], str]]] = {
    "capture": capture,
    "watching": watching,
    "attribution": attribution,
    "sweep": sweep,
}


def page(text: str, measured: Mapping[str, Any]) -> str:
    """The page with the tables of what was measured."""
    tables = {part: write(measured[part]) for part, write in PARTS.items() if part in measured}
    tables["short"] = short(measured)
    for part, table in tables.items():
        found = re.search(f"{re.escape(mark(part))}\n.*?{END}", text, re.DOTALL)
        if found:
            text = text.replace(found[0], f"{mark(part)}\n\n{table}\n\n{END}")
    return text


def main() -> int:
    """Brings the pages up to date."""
    if not MEASURED.exists():
        print(f"There is no {MEASURED.relative_to(ROOT)}: run `make bench-peers` first.")
        return 1
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    for path in PAGES:
        path.write_text(page(path.read_text(encoding="utf-8"), measured), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
