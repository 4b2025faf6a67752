"""Every layer of a run for a report: as much detail as there is room for."""

from __future__ import annotations

from typing import Final

from nethook.page.report.page import Made, made
from nethook.page.section import Subject
from nethook.page.sections.layer import folded_layer

_DETAIL: Final = (256, 128, 64, 32, 16)
"""Columns of a layer's figures, from the finest."""
_SAMPLED: Final = 3  # layers that the size of all is judged by
_MARGIN: Final = 0.9  # layers differ: what the sampled ones take must leave some room


def layers_within(subject: Subject, room: int) -> tuple[list[Made], str]:
    """All layers in `room` bytes, and what was left out, in words."""
    addresses = subject.reading.layers()
    if not addresses:
        return [], "The run has no layers with recorded outputs."
    places = {address: index for index, address in enumerate(addresses)}
    step = max(1, len(addresses) // _SAMPLED)
    sampled = addresses[::step][:_SAMPLED]

    def layer(address: str, columns: int) -> Made:
        return made(folded_layer(subject, places[address], address, columns))

    for columns in _DETAIL:
        taken = max(layer(address, columns).size for address in sampled)
        if taken * len(addresses) <= room * _MARGIN:
            break
    told = {site for finding in subject.reading.findings for site in finding.sites}
    found: dict[str, Made] = {}
    spent = without = 0
    # Layers that a finding names come first where not all can be drawn.
    for address in sorted(addresses, key=lambda name: name not in told):
        shown = layer(address, columns)
        if spent + shown.size > room:
            shown = layer(address, 0)
            without += 1
        spent += shown.size
        found[address] = shown
    note = (
        f"{without} of {len(addresses)} layers are without figures: a report has at most 8 MB."
        if without
        else ""
    )
    return [found[address] for address in addresses], note
