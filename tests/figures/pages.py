"""A report as a browser would take it apart."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

# What may hold text without an end tag.
VOID = {"meta", "link", "br", "input", "img", "hr"}


class Page(HTMLParser):
    """Elements, texts, scripts and the data of figures."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        elif self.open[-1:] != ["style"]:
            self.text += data

    @property
    def figures(self) -> dict[str, Any]:
        """The data of each figure, by its id."""
        return {
            str(attrs["id"]): json.loads(text)
            for attrs, text in self.scripts
            if attrs.get("type") == "application/json" and str(attrs["id"]).startswith("figure-")
        }


def strings(value: Any) -> list[str]:
    """Every text in plain data, names of fields included."""
    if isinstance(value, dict):
        return [*value, *(text for entry in value.values() for text in strings(entry))]
    if isinstance(value, list):
        return [text for entry in value for text in strings(entry)]
    return [value] if isinstance(value, str) else []
