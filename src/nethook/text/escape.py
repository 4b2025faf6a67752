"""Text of others, made safe for where it goes.

A name in a model, a run file, an error message may hold anything. Each sink has its own meaning for
some characters, and its own function here; what is not listed is passed as it is.

    plotly_text     labels and hover texts of Plotly: its tags, entities, `%{...}` and TeX
    html_text       HTML, between tags and in quoted attributes
    html_prose      the same between tags, with `code` marked
    script_json     JSON inside a `<script>` of an HTML page
    line            one line for a terminal or a log: control characters are spelt out
    cell            a cell of CSV that a spreadsheet does not take for a formula
"""

from __future__ import annotations

import json
from typing import Final

LONGEST: Final = 60
"""Characters of a label; a longer one is cut in its middle, since both ends tell names apart."""


def plotly_text(text: object) -> str:
    """Text that Plotly shows as it is, wherever it takes text or a template."""
    safe = line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # `%{x}` would be filled in by a template, and `$x$` typeset where MathJax is loaded.
    return safe.replace("%", "&#37;").replace("$", "&#36;")


def html_text(text: object) -> str:
    """Text for HTML, between tags or in a quoted attribute; lines stay lines."""
    import html  # its table of entities is large, and few processes write HTML

    return html.escape("\n".join(line(row) for row in str(text).split("\n")), quote=True)


def html_prose(text: object) -> str:
    """Text for HTML between tags, in which `code` is marked as such."""
    parts = html_text(text).split("`")
    if len(parts) % 2 == 0:  # one that has no partner is a character as any other
        parts[-2:] = ["`".join(parts[-2:])]
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))


def script_json(value: object) -> str:
    """JSON that cannot end the `<script>` it stands in. NaN and infinities become null."""
    text = json.dumps(_finite(value), ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def line(text: object) -> str:
    """One line: whatever is not printable is spelt out.

    A name may hold anything; a control character must not move a terminal's cursor.
    """
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in shown)


def cell(text: object) -> str:
    """A cell of CSV: what a spreadsheet would run as a formula gets an apostrophe before it."""
    shown = "\n".join(line(row) for row in str(text).split("\n"))
    return f"'{shown}" if shown.lstrip(" \n").startswith(("=", "+", "-", "@")) else shown


def shorten(text: object, most: int = LONGEST) -> str:
    """Text of at most `most` characters, with its middle left out where it is longer."""
    shown = line(text)
    if len(shown) <= most:
        return shown
    end = most // 2
    return f"{shown[: most - end - 1]}…{shown[-end:]}"


def labels(names: list[str], most: int = 40) -> list[str]:
    """Names shortened for an axis, escaped for Plotly, and still different from each other."""
    distinct: list[str] = []
    taken: set[str] = set()
    for name in names:
        short = shorten(name or "(model)", most)
        label, number = plotly_text(short), 2
        while label in taken:
            label, number = plotly_text(f"{short} ({number})"), number + 1
        taken.add(label)
        distinct.append(label)
    return distinct


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {str(name): _finite(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return value
