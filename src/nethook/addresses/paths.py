"""Paths inside nested values: `[0]`, `["logits"]`, `.logits`, and any chain of these."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

from nethook.errors import PatternError
from nethook.text.escape import line


@dataclass(frozen=True, slots=True)
class Item:
    """A step by index or key: `[0]`, `["logits"]`."""

    key: Any

    def __str__(self) -> str:
        if isinstance(self.key, str):
            escaped = self.key.replace("\\", "\\\\").replace('"', '\\"')
            return f'["{line(escaped)}"]'
        return f"[{self.key!r}]"


@dataclass(frozen=True, slots=True)
class Attribute:
    """A step by attribute: `.logits`."""

    key: str

    def __str__(self) -> str:
        return f".{self.key}"


Path: TypeAlias = tuple[Attribute | Item, ...]

_NAME = re.compile(r"\.([^\W\d]\w*)")


def show_path(path: Path) -> str:
    """A path as it is typed after the value: `[0].logits`."""
    return "".join(str(step) for step in path)


def parse_path(text: str) -> Path:
    """Reads `[0]`, `["logits"]`, `.logits`, or a chain of these; an empty text is the value itself.

    A key may be any literal of Python, such as `("user", 1)`. Raises `PatternError` for anything
    else.
    """
    steps: list[Attribute | Item] = []
    position = 0
    while position < len(text):
        name = _NAME.match(text, position)
        step, end = (Attribute(name[1]), name.end()) if name else _read_item(text, position)
        if step is None:
            raise PatternError(
                f'{text!r} is not a path inside a value: expected [0], ["key"] or .name at '
                f"{text[position:]!r}. Examples: '[0]', '.logits', '[\"hidden\"][1]'."
            )
        steps.append(step)
        position = end
    return tuple(steps)


def _read_item(text: str, start: int) -> tuple[Item | None, int]:
    """The item that stands at one place of a text, and where it ends."""
    end = text.find("]", start) if text[start] == "[" else -1
    while end >= 0:
        try:
            key = ast.literal_eval(text[start + 1 : end])
            hash(key)
            return Item(key), end + 1
        except (SyntaxError, ValueError, TypeError):
            end = text.find("]", end + 1)  # this one was part of the key
    return None, start
