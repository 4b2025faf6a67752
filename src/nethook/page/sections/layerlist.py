"""All layers of a run with their latest numbers, in order of execution."""

from __future__ import annotations

from typing import Any, Final

from nethook.figures.site_order import shape_text
from nethook.page.section import Section, Subject
from nethook.page.sections.layer import latest
from nethook.text.numbers import number, share

_MOST: Final = 500  # layers in the list
_DEAD: Final = 0.5  # share of dead units from which a number is marked


def layerlist(subject: Subject) -> Section:
    """The section of the list."""
    return Section("layerlist", subject.tag, lambda: _data(subject))


def _data(subject: Subject) -> dict[str, Any]:
    reading = subject.reading
    names = reading.layers()
    rows = []
    for name in names[:_MOST]:
        numbers = []
        for word, value, is_share in latest(reading, name):
            text = f"{word} {share(value) if is_share else number(value)}"
            numbers.append((text, is_share and value >= _DEAD))
        rows.append(
            {
                "name": name,
                "to": subject.links.layer(name),
                "kind": reading.order.kind(name),
                "shape": shape_text(reading.order.info(name).get("shape")),
                "numbers": numbers,
                "findings": [each for each in reading.findings if name in each.sites][:3],
            }
        )
    return {"rows": rows, "left_out": max(0, len(names) - _MOST)}
