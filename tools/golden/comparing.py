"""Compares two pieces of plain data, field by field, without what two runs cannot agree on."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

# Numbers that two runs of one version do not agree on either.
TIMES: Final = re.compile(
    r"(^|\.)(started|ended|finished|time|seconds|beat|pid|host\w*|python|platform|command|path|git|versions?"
    r"|sessions|cost|\w*overhead|packages|devices|nethook|torch|script|cwd|argv|revision|dirty|folder)"
    r"(\.|$)|_seconds|seconds_|watch_share|anchor"
)
# What a budget thins, or what follows from that. It decides by the clock, so that two runs of one
# version do not agree on it. These scalars have points at the steps that were looked at:
THINNED: Final = re.compile(r"grad_norm|update_ratio|batch_fingerprint")
# The last event says how thin it became. Of a site, those calls, gradients and updates are counted
# that were measured, and less is held in memory.
THINNED_FIELDS: Final = re.compile(
    r"\.events\[\d+\]\[3\]\.every$|\.info\.memory\.\w+$"
    r"|\.sites\..*\.(calls(\.\w+)?|steps|with_grad|moved\[\d\])$"
)
ONLY_HERE: Final = "only here"
ONLY_IN_BASE: Final = "only in the base"
Difference = tuple[str, str]
"""The path of a field, and what is there in the base and here."""


def compared(base: Any, here: Any, path: str = "run") -> Iterator[Difference]:
    """Every field in which two pieces of plain data differ, times apart."""
    if TIMES.search(path):
        return
    if isinstance(base, Mapping) and isinstance(here, Mapping):
        for name in sorted({*base, *here}, key=str):
            where = f"{path}.{name}"
            if name in base and name in here:
                yield from compared(base[name], here[name], where)
            elif not TIMES.search(where):
                yield where, ONLY_HERE if name in here else ONLY_IN_BASE
    elif isinstance(base, list | tuple) and isinstance(here, list | tuple):
        if len(base) != len(here):
            yield path, f"{len(base)} entries, and {len(here)} here"
        else:
            for index, (one, other) in enumerate(zip(base, here, strict=True)):
                yield from compared(one, other, f"{path}[{index}]")
    elif isinstance(base, float) and isinstance(here, float):
        if base != here and not (math.isnan(base) and math.isnan(here)):
            yield path, f"{base!r}, and {here!r} here"
    elif base != here:
        yield path, f"{base!r:.60}, and {here!r:.60} here"


def keep_common_spans(base: dict[str, Any], here: dict[str, Any]) -> None:
    """Takes out the spans of histograms and units that only one of two runs has.

    In loops of short steps their length is a tenth of a second, so it differs from run to run.
    """
    for name in {*base} & {*here}:
        one, other = base[name]["series"], here[name]["series"]
        for series in {*one} & {*other}:
            for field in ("histograms", "active"):
                both = one[series][field], other[series][field]
                one[series][field], other[series][field] = in_both(*both)


def keep_what_both_measured(base: dict[str, Any], here: dict[str, Any]) -> None:
    """Takes out what a budget thins: what is measured in which step then depends on the clock.

    Losses, learning rates, sites, events and findings stay whole. Of series, the windows stay
    that both have and in which both measured every step; of the points in `THINNED`, the steps that
    both have.
    """
    for name in {*base} & {*here}:
        one, other = base[name], here[name]
        for series in {*one["series"], *other["series"]}:
            sides = one["series"].pop(series, {}), other["series"].pop(series, {})
            windows = [whole_windows(side.get("windows", {})) for side in sides]
            for run, kept in zip((one, other), in_both(*windows), strict=True):
                run["series"][series] = {"windows": kept, "histograms": {}, "active": {}}
        for scalar in filter(THINNED.match, {*one["scalars"], *other["scalars"]}):
            sides = one["scalars"].pop(scalar, {}), other["scalars"].pop(scalar, {})
            for run, kept in zip((one, other), in_both(*sides), strict=True):
                run["scalars"][scalar] = kept
        for run in (one, other):
            run["events"] = [event for event in run["events"] if event[1] != "thinned"]


def whole_windows(windows: Mapping[str, Any]) -> dict[str, Any]:
    """Those in which every step was measured."""
    return {span: row for span, row in windows.items() if row["seen"] == row["steps"]}


def in_both(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> tuple[Any, Any]:
    """Two mappings without the keys that only one of them has."""
    common = {*one} & {*other}
    return {key: one[key] for key in common}, {key: other[key] for key in common}
