"""Writes the tables of docs/modes.md, from the cells that tests/modes declares.

python -m tools.modes_page

What is written is what is declared, so it is the same whatever the torch; the tests compare what
is declared with the torch they run on.
"""

from __future__ import annotations

from pathlib import Path

from tests.modes.matrix import FEATURES, GROUPS, Cell, Mode, load, of

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "modes.md"
WORKS = "✓"
TITLES = ("Does not work", "Refused", "Not tested by itself (–)", "Without its guard")
"""The kinds of sentences below a table, in order."""
Sentences = dict[str, dict[str, list[Mode]]]
"""A sentence -> features -> the modes in which it is true of them."""
BEGIN, END = "<!-- modes: written by tools/modes_page.py -->", "<!-- end of modes -->"


def section() -> str:
    """The overview; then one table per group, with a row per mode, and its notes."""
    modes, cells = load()
    lines = [summary(), ""]
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
        models = sorted({cell.model for cell in cells if cell.mode is mode})
        lines.append(f"| {mode.name}: {mode.what} | {' | '.join(shown)} | {', '.join(models)} |")
    return [*lines, ""]


def field(mode: Mode, feature: str, cells: list[Cell]) -> str:
    """What stands in one field of a table."""
    declared = list(of(mode, feature, cells))
    if not declared:
        return "–"
    answer = "refused" if declared[0].refused else WORKS
    lacking = declared[0].lacking
    return answer if lacking is None else f"{answer}, not {lacking.where}"


def notes(rows: list[Mode], cells: list[Cell]) -> list[str]:
    """What is said below a table: each sentence once, with the fields that it is about."""
    kinds: dict[str, Sentences] = {title: {} for title in TITLES}
    for mode in rows:
        for feature in FEATURES:
            for cell in list(of(mode, feature, cells))[:1]:
                if cell.lacking:
                    sentence = f"{cell.lacking.where}: {cell.lacking.why}"
                    _add(kinds["Does not work"], sentence, feature, mode)
                if cell.refused:
                    _add(kinds["Refused"], cell.refused, feature, mode)
                else:
                    _add(kinds["Without its guard"], cell.without, feature, mode)
            if feature in mode.beside:
                _add(kinds["Not tested by itself (–)"], mode.beside[feature], feature, mode)
    lines: list[str] = []
    for title, sentences in kinds.items():
        if sentences:
            lines += [f"{title}:", ""]
            lines += [f"- {_fields(by, sentences)}: {text}." for text, by in sentences.items()]
            lines.append("")
    return lines[:-1]


def _add(sentences: Sentences, text: str, feature: str, mode: Mode) -> None:
    sentences.setdefault(text.rstrip("."), {}).setdefault(feature, []).append(mode)


def _fields(by: dict[str, list[Mode]], sentences: Sentences) -> str:
    """Which fields of a table a sentence is about: features with the same modes together.

    Modes are left out where no other sentence is about the feature, in several modes.
    """
    together: dict[tuple[str, ...], list[str]] = {}
    for feature, modes in by.items():
        alone = len(modes) > 1 and sum(feature in others for others in sentences.values()) == 1
        names = () if alone else tuple(mode.name for mode in modes)
        together.setdefault(names, []).append(feature)
    return "; ".join(
        ", ".join(features) + (f" ({' · '.join(names)})" if names else "")
        for names, features in together.items()
    )


def summary() -> str:
    """The overview: a row per group, with how many of its modes are tested."""
    modes, cells = load()
    lines = [f"| | {' | '.join(FEATURES)} |", "| --- |" + " --- |" * len(FEATURES)]
    for group in GROUPS:
        rows = [mode for mode in modes if mode.group == group]
        if not rows:
            continue
        shown = []
        for feature in FEATURES:
            fields = [field(mode, feature, cells).partition(",")[0] for mode in rows]
            counts = [(fields.count(answer), answer) for answer in (WORKS, "refused")]
            shown.append(" · ".join(f"{n} {answer}" for n, answer in counts if n) or "–")
        lines.append(f"| {group} | {' | '.join(shown)} |")
    return "\n".join(lines)


def page() -> str:
    """The page with its part brought up to date."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{section()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
