"""A table of plain data, as text for a terminal or a log and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nethook.text.escape import html_prose, line

_ROWS_SHOWN = 60  # more scroll past; the middle is left out


@dataclass(frozen=True)
class Table:
    """A title, the columns' names, and rows of text. Columns named in `right` align right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[str] = field(default=frozenset())

    def text(self) -> str:
        """The table in plain characters, without trailing spaces."""
        rows = self._shown()
        if not rows:
            return self.title
        cells = [tuple(line(cell) for cell in row) for row in [self.columns, *rows]]
        widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
        lines = [self.title, self._line(cells[0], widths), "  ".join("─" * w for w in widths)]
        lines += [self._line(row, widths) for row in cells[1:]]
        return "\n".join(lines)

    def html(self) -> str:
        """The table as HTML; everything in it is escaped."""
        title = f"<div><b>{html_prose(self.title)}</b></div>"
        rows = self._shown()
        if not rows:
            return title
        head = "".join(self._cell("th", name, name) for name in self.columns)
        body = "".join(
            "<tr>"
            + "".join(self._cell("td", *pair) for pair in zip(self.columns, row, strict=True))
            + "</tr>"
            for row in rows
        )
        return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _shown(self) -> list[Sequence[str]]:
        rows = list(self.rows)
        if len(rows) <= _ROWS_SHOWN:
            return rows
        half = _ROWS_SHOWN // 2
        gap = [f"… {len(rows) - 2 * half} more", *[""] * (len(self.columns) - 1)]
        return [*rows[:half], gap, *rows[-half:]]

    def _line(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        padded = (
            cell.rjust(width) if name in self.right else cell.ljust(width)
            for name, cell, width in zip(self.columns, cells, widths, strict=True)
        )
        return "  ".join(padded).rstrip()

    def _cell(self, tag: str, column: str, cell: str) -> str:
        align = "right" if column in self.right else "left"
        # Viewers without a stylesheet of their own would leave no room between cells.
        return f'<{tag} style="padding:2px 8px;text-align:{align}">{html_prose(cell)}</{tag}>'
