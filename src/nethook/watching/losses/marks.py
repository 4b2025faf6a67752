"""Marks on the autograd nodes that made a watched model's outputs.

Whoever walks the graph from a loss back to a model meets such a node, and knows by
`node.metadata.get(OUTPUT_MARK)` which output of which model it made. Nothing holds the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from nethook.addresses.paths import Path

OUTPUT_MARK: Final = "nethook.output"
"""The key in `node.metadata` of such a node."""

MOST_MARKS: Final = 256
"""Marks that are kept to be used again: one per model and path in what it returns."""


@dataclass(frozen=True)
class OutputMark:
    """Which output it was: the model's name ("" for an only one), and where in what it returned."""

    model: str
    path: Path = ()


class Marks:
    """Makes marks, each of them once."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, Any], OutputMark] = {}

    def __len__(self) -> int:
        return len(self._made)

    def put(self, node: Any, model: str, path: Any) -> None:
        """Marks the node of an output; None where that has no graph."""
        if node is None:
            return
        mark = self._made.get((model, path))
        if mark is None:
            mark = OutputMark(model, path)
            if len(self._made) < MOST_MARKS:
                self._made[model, path] = mark
        node.metadata[OUTPUT_MARK] = mark
