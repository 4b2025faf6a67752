"""What shows a finding: which numbers of the run, with the threshold and the onset drawn.

A finding's evidence may say itself what shows it: `{"quantity": "silent"}`, one of
`drawing.quantities` (of its sites), or `loss`, `learning_rate`, `gradient_norm`, `update_ratio`.
Else the code decides. A threshold is drawn only on the axis of the number that was held against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nethook.drawing.data import Panel, Spec
from nethook.drawing.quantities import QUANTITIES
from nethook.drawing.training.curves import curves, onset
from nethook.drawing.training.depth import Profile, depth
from nethook.figures.panels import loss_panel, norm_panel, rate_panel, ratio_panel
from nethook.figures.reading import Reading, mark_of
from nethook.text.findings import Finding

_MOST_SITES: Final = 6  # lines that can be told apart
_POINTS: Final = 400  # of a line: the figure stands beside a text, in half the width

_PANELS: Final[dict[str, Callable[[Reading], Panel | None]]] = {
    "loss": loss_panel,
    "learning_rate": rate_panel,
    "gradient_norm": norm_panel,
    "update_ratio": ratio_panel,
}

# Words in the name of a piece of evidence that say which number was held against its threshold.
_WORDS: Final = {
    "silent": ("silent", "dead"),
    "ends": ("near", "ends", "saturated"),
    "updates": ("update",),
    "update_ratio": ("update",),
    "nonfinite": ("nonfinite", "non_finite", "nan"),
    "spread": ("std", "spread"),
    "zeros": ("zero",),
    "gradient_norm": ("grad_norm", "gradient_norm"),
    "learning_rate": ("lr", "learning_rate", "rate"),
    "loss": ("loss",),
}


@dataclass(frozen=True)
class _Shown:
    sites: str = ""  # a quantity of the finding's sites
    panels: tuple[str, ...] = ("loss",)
    over_depth: str = ""  # a quantity as a profile at the onset and at the end


_NORM, _RATIO = ("loss", "gradient_norm"), ("loss", "update_ratio")
_BY_CODE: Final = {
    "missing-step": _Shown(panels=_RATIO),
    "missing-zero-grad": _Shown(panels=_NORM),
    "gradient-wiped": _Shown(panels=_NORM),
    "optimizer-misses-parameters": _Shown("updates"),
    "no-gradient": _Shown("gradients"),
    "clipped-before-unscale": _Shown(panels=_NORM),
    "unscaled-accumulation": _Shown(panels=_RATIO),
    "scheduler-collapse": _Shown(panels=("loss", "learning_rate")),
    "symmetric-init": _Shown("weights"),
    "bad-init-scale": _Shown(over_depth="spread"),
    "learning-rate-too-high": _Shown(panels=_RATIO),
    "learning-rate-too-low": _Shown(panels=_RATIO),
    "oscillating-loss": _Shown(panels=("loss", "learning_rate")),
    "weight-decay-too-strong": _Shown("weights"),
    "clipping-too-tight": _Shown(panels=_NORM),
    "adam-instability": _Shown(panels=_RATIO),
    "dead-units": _Shown("silent"),
    "saturated-activation": _Shown("ends"),
    "vanishing-gradient": _Shown("output_gradients", over_depth="output_gradients"),
    "exploding-gradient": _Shown("output_gradients", _NORM, "output_gradients"),
    "non-finite": _Shown("nonfinite"),
    "input-collapsed": _Shown("spread"),
    "input-ignored": _Shown("spread"),
    "unused-module": _Shown(panels=()),
}


def finding_specs(reading: Reading, finding: Finding) -> list[Spec]:
    """The figures that show a finding: courses with its onset, and a profile over depth."""
    shown = _BY_CODE.get(finding.code, _Shown())
    for evidence in finding.evidence:
        if evidence.quantity in QUANTITIES:
            shown = replace(shown, sites=evidence.quantity)
        elif evidence.quantity in _PANELS and evidence.quantity not in shown.panels:
            shown = replace(shown, panels=(*shown.panels, evidence.quantity))
    made = []
    if shown.sites and (panel := _site_panel(reading, finding, shown.sites)):
        made.append(panel)
    for name in shown.panels:
        if panel := _PANELS[name](reading):
            limit = _threshold(finding, name)
            short = replace(panel, tall=1.0 if made else 1.4, threshold=limit)
            made.append(_readable(short))
    specs = []
    if made:
        mark = mark_of(finding)
        spec = curves(made, [mark] if finding.first_step is not None else (), points=_POINTS)
        if finding.first_step is not None:
            spec["layout"]["shapes"] += onset(mark)[1:]
            spec["layout"]["annotations"].append(_onset_text(finding))
        specs.append(spec)
    if shown.over_depth:
        profile = depth_spec(reading, shown.over_depth, _steps(finding, reading))
        specs += [profile] if profile is not None else []
    return specs


def _site_panel(reading: Reading, finding: Finding, name: str) -> Panel | None:
    """A quantity of the finding's sites."""
    grid = reading.grid(name)
    if grid is None:
        return None
    rows = set(grid.rows)
    wanted: list[str] = []
    for site in finding.sites:
        wanted += [site] if site in rows else [
            parameter for parameter in reading.order.parameters(site) if parameter in rows
        ]  # fmt: skip
    lines = [
        line for site in dict.fromkeys(wanted) if (line := reading.row(name, site)) is not None
    ]
    if not lines:
        return None
    quantity = grid.quantity
    title = quantity.title.lower()
    more = f", {len(lines) - _MOST_SITES} more not drawn" if len(lines) > _MOST_SITES else ""
    if len(lines) == 1:
        title = f"{title} of {lines[0].name}"
    panel = Panel(
        f"{title}{more}",
        lines[:_MOST_SITES],
        quantity.explain,
        quantity.unit if quantity.scale == "share" else "",
        quantity.scale,
        _threshold(finding, name),
        1.4,
    )
    return _readable(panel)


def _readable(panel: Panel) -> Panel:
    """A logarithmic panel without a positive number would be empty, or without its threshold."""
    if panel.scale != "log":
        return panel
    positive = any((np.asarray(line.value) > 0).any() for line in panel.lines)
    limit = panel.threshold
    keep = limit if limit is not None and limit > 0 and positive else None
    return replace(
        panel, scale="log" if positive else "linear", threshold=keep if positive else limit
    )


def _threshold(finding: Finding, quantity: str) -> float | None:
    """The threshold that this very quantity was held against."""
    for evidence in finding.evidence:
        limit = evidence.threshold
        if limit is None or not math.isfinite(limit):
            continue
        name = evidence.name.lower()
        words = _WORDS.get(quantity, ())
        if evidence.quantity == quantity or (
            not evidence.quantity and any(word in name for word in words)
        ):
            return float(limit)
    return None


def _onset_text(finding: Finding) -> dict[str, object]:
    return {
        "text": f"since step {finding.first_step:,}", "showarrow": False,
        "x": float(finding.first_step or 0), "xref": "x", "xanchor": "left", "xshift": 4,
        "y": 0.0, "yref": "paper", "yanchor": "bottom",
    }  # fmt: skip


def _steps(finding: Finding, reading: Reading) -> list[int]:
    """The first step, the onset, and the end of the run."""
    steps = [0, finding.first_step or 0, finding.last_step or reading.last_step]
    return sorted({max(0, min(step, reading.last_step)) for step in steps})


def depth_spec(reading: Reading, name: str, steps: list[int]) -> Spec | None:
    """A quantity over depth at some steps."""
    grid = reading.grid(name)
    if grid is None:
        return None
    profiles: dict[int, Profile] = {}
    for step in steps:
        index = int(np.clip(np.searchsorted(grid.last_step, step), 0, len(grid.last_step) - 1))
        # A thinned run has columns with gaps: each row shows its latest number up to there.
        values = np.array([_latest(row[: index + 1]) for row in grid.last])
        shown = int(min(max(step, grid.first_step[index]), grid.last_step[index]))
        profiles[shown] = Profile(f"step {shown:,}", values)
    return depth(grid.quantity, grid.rows, list(profiles.values()))


def _latest(row: np.ndarray[tuple[int], np.dtype[np.floating]]) -> float:
    there = np.flatnonzero(~np.isnan(row))
    return float(row[there[-1]]) if there.size else math.nan
