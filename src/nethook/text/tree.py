"""A tree of plain data, as text for a terminal or a log, as HTML for a notebook, and for Rich."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nethook.text.escape import line

if TYPE_CHECKING:
    import rich.text
    import rich.tree

ROWS_SHOWN = 80  # more scroll past; deep parts are folded, and then the middle is left out


@dataclass(frozen=True, slots=True)
class Branch:
    """One row of a tree: its cells, the first of which is indented, and what lies below it."""

    cells: tuple[str, ...]
    children: tuple[Branch, ...] = ()

    def size(self) -> int:
        """How many rows it takes with all that lies below it."""
        below, stack = 0, [self]
        while stack:
            branch = stack.pop()
            below += 1
            stack += branch.children
        return below


@dataclass(frozen=True, slots=True)
class TreeView:
    """A title, the columns' names, and branches. `rows` limits what is shown; None shows all."""

    title: str
    columns: tuple[str, ...]
    branches: tuple[Branch, ...]
    rows: int | None = ROWS_SHOWN

    def text(self) -> str:
        """The tree in plain characters, without trailing spaces."""
        shown = self._shown()
        if not shown:
            return self.title
        rows = [self.columns, *_lines(shown, "")]
        cells = [tuple(line(cell) for cell in row) for row in rows]
        widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
        ruled = [cells[0], tuple("─" * width for width in widths), *cells[1:]]
        return "\n".join([self.title, *(_line(row, widths) for row in ruled)])

    def html(self) -> str:
        """The tree as HTML that folds; everything in it is escaped."""
        title = f"<div><b>{html.escape(self.title)}</b></div>"
        parts = "".join(_html(branch, opened=len(self.branches) <= 3) for branch in self.branches)
        return f'{title}<div style="font-family:monospace;line-height:1.5">{parts}</div>'

    def rich(self) -> rich.tree.Tree:
        """The tree for Rich's printer, whole."""
        from rich.tree import Tree

        tree = Tree(_rich_label((self.title,)))
        stack = [(tree, branch) for branch in reversed(self.branches)]
        while stack:
            above, branch = stack.pop()
            inner = above.add(_rich_label(branch.cells))
            stack += [(inner, child) for child in reversed(branch.children)]
        return tree

    def _shown(self) -> list[Branch]:
        branches = list(self.branches)
        if self.rows is None:
            return branches
        depth = _depth_that_fits(branches, self.rows)
        if depth is not None:
            return [_folded(branch, depth) for branch in branches]
        half = self.rows // 2
        left_out = sum(branch.size() for branch in branches[half:-half])
        gap = Branch((f"… {left_out:,} more", *[""] * (len(self.columns) - 1)))
        kept = [*branches[:half], gap, *branches[-half:]]
        return [_folded(branch, 0) for branch in kept]


def _depth_that_fits(branches: Sequence[Branch], rows: int) -> int | None:
    """How deep the tree can be shown in so many rows; None if not even its first level can."""
    level, total, depth = list(branches), 0, -1
    while level:
        total += len(level)
        if total > rows:
            return depth if depth >= 0 else None
        level = [child for branch in level for child in branch.children]
        depth += 1
    return depth


def _folded(branch: Branch, depth: int) -> Branch:
    if not branch.children:
        return branch
    if depth == 0:
        first, *rest = branch.cells
        return Branch((f"{first}  (+{branch.size() - 1:,} below)", *rest))
    return Branch(branch.cells, tuple(_folded(child, depth - 1) for child in branch.children))


def _lines(branches: Sequence[Branch], indent: str) -> Iterator[tuple[str, ...]]:
    """The rows of a tree, the first level without guides."""
    for branch in branches:
        first, *rest = branch.cells
        yield (indent + first, *rest)
        yield from _below(branch, indent)


def _below(branch: Branch, indent: str) -> Iterator[tuple[str, ...]]:
    for child in branch.children:
        last = child is branch.children[-1]
        first, *rest = child.cells
        yield (f"{indent}{'└─ ' if last else '├─ '}{first}", *rest)
        yield from _below(child, indent + ("   " if last else "│  "))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()


def _html(branch: Branch, *, opened: bool) -> str:
    first, *rest = branch.cells
    muted = " · ".join(html.escape(cell) for cell in rest if cell)
    label = f'{html.escape(first)} <span style="opacity:.65">{muted}</span>'
    if not branch.children:
        return f'<div style="margin-left:1.2em">{label}</div>'
    inner = "".join(_html(child, opened=False) for child in branch.children)
    state = " open" if opened else ""
    return (
        f'<details{state} style="margin-left:1em"><summary>{label}</summary>'
        f'<div style="margin-left:.6em">{inner}</div></details>'
    )


def _rich_label(cells: Sequence[str]) -> rich.text.Text:
    from rich.text import Text

    first, *rest = (line(cell) for cell in cells)
    label = Text(first, style="bold")
    for cell in rest:
        if cell:
            label.append(f"  {cell}", style="dim")
    return label
