"""Paths inside nested values: `[0]`, `["logits"]`, `.logits`, and any chain of these."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

from nethook.errors import PatternError


@dataclass(frozen=True, slots=True)
class Item:
    """A step by index or key: `[0]`, `["logits"]`."""

    key: Any

    def __str__(self) -> str:
        if isinstance(self.key, str):
            escaped = self.key.replace("\\", "\\\\").replace('"', '\\"')
            return f'["{escaped}"]'
        return f"[{self.key!r}]"


@dataclass(frozen=True, slots=True)
class Attribute:
    """A step by attribute: `.logits`."""

    key: str

    def __str__(self) -> str:
        return f".{self.key}"


Path: TypeAlias = tuple[Attribute | Item, ...]

_STEP = re.compile(
    r"""\.(?P<name>[^\W\d]\w*) | \[(?P<key> -?\d+ | "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' )\]""",
    re.VERBOSE,
)


def show_path(path: Path) -> str:
    """A path as it is typed after the value: `[0].logits`."""
    return "".join(str(step) for step in path)


def parse_path(text: str) -> Path:
    """Reads `[0]`, `["logits"]`, `.logits`, or a chain of these; an empty text is the value itself.

    Raises `PatternError` for anything else.
    """
    steps: list[Attribute | Item] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise PatternError(
                f'{text!r} is not a path inside a value: expected [0], ["key"] or .name at '
                f"{text[at:]!r}. Examples: '[0]', '.logits', '[\"hidden\"][1]'."
            )
        name = match["name"]
        steps.append(Item(ast.literal_eval(match["key"])) if name is None else Attribute(name))
        at = match.end()
    return tuple(steps)
