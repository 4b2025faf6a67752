"""Every layer of a run for a report: as much detail as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from nethook.drawing.curves import curves
from nethook.drawing.data import Line, Panel, Spec
from nethook.drawing.distribution import bands, histogram_over_time, merge_spans, units_over_time
from nethook.drawing.render import payload
from nethook.figures.reading import Reading
from nethook.figures.runs import SHARES, WORDS
from nethook.figures.site_order import shape_text
from nethook.runs import names
from nethook.runs.reading.results import Histograms
from nethook.text.escape import script_json
from nethook.text.findings import Finding
from nethook.text.numbers import number, share


@dataclass(frozen=True)
class Layer:
    """A layer that can be unfolded. `specs` are (wide, spec)."""

    address: str
    kind: str
    shape: str
    numbers: str
    specs: Sequence[tuple[bool, Spec]] = field(repr=False)
    findings: Sequence[Finding] = ()
    facts: Sequence[tuple[str, str]] = ()


_DETAIL: Final = (256, 128, 64, 32, 16)
"""Columns of a layer's figures, from the finest."""
_SAMPLED: Final = 3  # layers that the size of all is judged by
_TEXT: Final = 900  # bytes of a layer without figures
_MARGIN: Final = 0.9  # layers differ: what the sampled ones take must leave some room


def layers_within(reading: Reading, room: int) -> tuple[list[Layer], str]:
    """All layers in `room` bytes, and what was left out, in words."""
    addresses = reading.layers()
    if not addresses:
        return [], "The run has no layers with recorded outputs."
    step = max(1, len(addresses) // _SAMPLED)
    sampled = addresses[::step][:_SAMPLED]
    for columns in _DETAIL:
        taken = max(_weight(_layer(reading, address, columns)) for address in sampled)
        if taken * len(addresses) <= room * _MARGIN:
            break
    told = {site for finding in reading.findings for site in finding.sites}
    made, spent, without = [], 0, 0
    # Layers that a finding names come first where not all can be drawn.
    for address in sorted(addresses, key=lambda name: name not in told):
        layer = _layer(reading, address, columns)
        size = _weight(layer)
        if spent + size > room:
            layer = _layer(reading, address, 0)
            size = _weight(layer)
            without += 1
        spent += size
        made.append(layer)
    positions = {address: index for index, address in enumerate(addresses)}
    made.sort(key=lambda layer: positions[layer.address])
    note = (
        f"{without} of {len(addresses)} layers are without figures: a report has at most 8 MB."
        if without
        else ""
    )
    return made, note


def _weight(layer: Layer) -> int:
    texts = 60 * len(layer.facts) + 120 * len(layer.findings[:12])
    return _TEXT + texts + sum(len(script_json(payload(spec))) + 300 for _, spec in layer.specs)


def _layer(reading: Reading, address: str, columns: int) -> Layer:
    info = reading.order.info(address)
    findings = [finding for finding in reading.findings if address in finding.sites]
    return Layer(
        address,
        reading.order.kind(address),
        shape_text(info.get("shape")),
        latest_numbers(reading, address),
        _specs(reading, address, columns) if columns else [],
        findings,
        layer_facts(reading, address),
    )


def latest_numbers(reading: Reading, address: str) -> str:
    """What stands beside a folded layer: its latest numbers."""
    parts = []
    for name, word in (("spread", "std"), ("output_gradients", "grad"), ("silent", "dead")):
        line = reading.row(name, address)
        if line is None:
            continue
        finite = np.asarray(line.value)[np.isfinite(line.value)]
        if finite.size:
            last = float(finite[-1])
            parts.append(f"{word} {share(last) if name == 'silent' else number(last)}")
    return " · ".join(parts)


def layer_facts(reading: Reading, address: str) -> list[tuple[str, str]]:
    """Parameters, calls, type, device and source line of a layer."""
    info = reading.order.info(address)
    facts: list[tuple[str, str]] = []
    for parameter in reading.order.parameters(address):
        about = reading.order.info(parameter)
        shape = shape_text(about.get("shape"))
        frozen = "" if about.get("requires_grad", True) else ", frozen"
        facts.append((parameter.rpartition(".")[2], f"{shape or '?'}{frozen}"))
    calls = info.get("calls")
    if isinstance(calls, dict):
        counted = [
            (str(phase), count)
            for phase, count in calls.items()
            if isinstance(count, int) and count
        ]
        facts.append(
            ("calls", ", ".join(f"{count:,} {phase}" for phase, count in counted) or "none")
        )
    told = ("dtype", "device", "activation", "source")
    return facts + [(name, info[name]) for name in told if isinstance(info.get(name), str)]


def _specs(reading: Reading, address: str, columns: int) -> list[tuple[bool, Spec]]:
    specs: list[tuple[bool, Spec]] = []
    panels = [panel for panel in layer_panels(reading, address) if panel.lines]
    if panels:
        height = 70 + 105 * len(panels)
        specs.append((True, curves(panels, reading.gaps, height=height, points=3 * columns)))
    series = reading.catalogue[address, names.OUTPUTS]
    for quantity in (names.OUTPUTS, names.GRADS):
        if not reading.has(address, quantity):
            continue
        histograms = reading.histograms(address, quantity)
        if not histograms.counts.any():
            continue
        merged = merge_spans(
            histograms.first_step, histograms.last_step, histograms.counts, columns
        )
        title = WORDS[quantity].capitalize()
        specs.append((False, histogram_over_time(f"{title} over time", *merged, histograms.values)))
        if quantity == names.OUTPUTS:
            first, last, counts = (column.astype(np.int64) for column in merged)
            whole = Histograms(address, quantity, "train", first, last, counts)
            quantiles = whole.quantiles(SHARES)
            specs.append((False, bands("Percentiles of outputs", first, last, quantiles, SHARES)))
    if series.units and reading.order.info(address).get("activation", "rectifier") == "rectifier":
        units = reading.units(address)
        if len(units):
            spans = (units.first_step, units.last_step)
            rows = 128 if columns >= 128 else 48
            spec = units_over_time(
                "Units that were ever active",
                *spans,
                units.active,
                units.measured,
                rows=rows,
                columns=columns,
            )
            specs.append((False, spec))
    return specs


def layer_panels(reading: Reading, address: str) -> list[Panel]:
    """Spread, gradients and updates of a layer and its parameters."""
    own = reading.order.parameters(address)
    if not own:  # a run that does not say whose they are: those below the layer's name
        grid = reading.grid("weights")
        own = [row for row in grid.rows if row.rpartition(".")[0] == address] if grid else []
    wanted = (
        ("spread", [address]),
        ("output_gradients", [address]),
        ("gradients", own),
        ("updates", own),
    )
    panels = []
    for name, rows in wanted:
        shown = reading.grid(name)
        if shown is None:
            continue
        lines = [
            _short(line, address) for row in rows if (line := reading.row(name, row)) is not None
        ]
        quantity = shown.quantity
        positive = any((np.asarray(line.value) > 0).any() for line in lines)
        scale = quantity.scale if quantity.scale != "log" or positive else "linear"
        panels.append(Panel(quantity.title.lower(), lines, quantity.explain, scale=scale))
    return panels


def _short(line: Line, address: str) -> Line:
    name = line.name.removeprefix(f"{address}.") or line.name
    return replace(line, name=name)
