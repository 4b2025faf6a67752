"""Writes docs/modes.md and the table in the README, from the cells that tests/modes declares.

python -m tools.modes_page

What is written is what is declared, so it is the same whatever the torch; the tests hold what is
declared against the torch they run on.
"""

from __future__ import annotations

from pathlib import Path

from tests.modes.matrix import FEATURES, GROUPS, Cell, Mode, load, of

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "modes.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- modes: written by tools/modes_page.py -->", "<!-- end of modes -->"


def section() -> str:
    """One table a group: a row a mode, a column a feature; then what is refused, and the guards."""
    modes, cells = load()
    lines: list[str] = []
    for group in GROUPS:
        rows = [mode for mode in modes if mode.group == group]
        if rows:
            lines += [f"## {group}", "", *_table(rows, cells), *notes(rows, cells), ""]
    return "\n".join(lines).rstrip()


def _table(rows: list[Mode], cells: list[Cell]) -> list[str]:
    lines = [
        f"| mode | {' | '.join(FEATURES)} | models |",
        "| --- |" + " --- |" * (len(FEATURES) + 1),
    ]
    for mode in rows:
        shown = [field(mode, feature, cells) for feature in FEATURES]
        models = sorted({each.model for each in cells if each.mode is mode})
        lines.append(f"| {mode.name}: {mode.what} | {' | '.join(shown)} | {', '.join(models)} |")
    return [*lines, ""]


def field(mode: Mode, feature: str, cells: list[Cell]) -> str:
    """What stands in one field of a table."""
    found = list(of(mode, feature, cells))
    if not found:
        return "–"
    answer = "refused" if found[0].refused else "works"
    lacking = found[0].lacking
    return answer if lacking is None else f"{answer}, not {lacking.where}"


def notes(rows: list[Mode], cells: list[Cell]) -> list[str]:
    """What is said below a table: one line a field and what it differs in."""
    lines = []
    for mode in rows:
        for feature in FEATURES:
            for each in list(of(mode, feature, cells))[:1]:
                if each.lacking:
                    where, why = each.lacking.where, each.lacking.why
                    lines.append(f"- {feature}, {mode.name}: not {where}: {why}.")
                if each.refused:
                    lines.append(f"- {feature}, {mode.name}: refused: {each.refused}")
                else:
                    lines.append(f"- {feature}, {mode.name}: without its guard, {each.without}.")
            if feature in mode.beside:
                lines.append(f"- {feature}, {mode.name}: {mode.beside[feature]}.")
    return lines


def summary() -> str:
    """The table of the README: a row a group."""
    modes, cells = load()
    lines = [f"| | {' | '.join(FEATURES)} |", "| --- |" + " --- |" * len(FEATURES)]
    for group in GROUPS:
        rows = [mode for mode in modes if mode.group == group]
        if not rows:
            continue
        shown = []
        for feature in FEATURES:
            fields = [field(mode, feature, cells).partition(",")[0] for mode in rows]
            counts = [f"{fields.count(each)} {each}" for each in ("works", "refused")]
            shown.append(", ".join(each for each in counts if each[0] != "0") or "–")
        lines.append(f"| {group} | {' | '.join(shown)} |")
    return "\n".join(lines)


def page() -> str:
    """The page with its part brought up to date."""
    return _with(PAGE, section())


def readme() -> str:
    """The README with its table brought up to date."""
    return _with(README, summary())


def _with(path: Path, part: str) -> str:
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{part}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    README.write_text(readme(), encoding="utf-8")
