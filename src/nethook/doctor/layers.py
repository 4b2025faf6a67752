"""The layers of a network as rules see them: in order of execution, with their numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nethook.doctor.history import Curve, History, SiteFacts
from nethook.runs.names import GRADS, INPUTS, OUTPUTS


def leaves(history: History) -> list[SiteFacts]:
    """Modules without modules below them that were called, in the order of their first calls."""
    called = [each for each in history.modules if each.fact("leaf")]
    called = [each for each in called if each.fact("first_call") is not None]
    return sorted(called, key=lambda each: int(each.fact("first_call")))


def weighted(history: History) -> list[SiteFacts]:
    """Those of them that have parameters and are no norms: what a signal passes through."""
    return [
        each
        for each in leaves(history)
        if each.fact("parameters") and each.fact("activation") != "norm"
    ]


def first_layer(history: History) -> str:
    """What the first layer is: `norm`, `embedding` (of whole numbers), or whatever else."""
    dtype = str(history.series_fact("", INPUTS, "dtype", ""))
    if "int" in dtype or "bool" in dtype:
        return "embedding"
    called = leaves(history)
    return str(called[0].fact("activation", "")) if called else ""


def late(curve: Curve, steps: int) -> Curve:
    """The second half of a run: what has become of it."""
    return curve.since(steps // 2)


def saturated_layers(history: History, share: float = 0.8) -> list[str]:
    """Layers of bounded activations of which most outputs are near their ends, for long."""
    found = []
    for module in leaves(history):
        if module.fact("activation") == "bounded":
            near = late(history.curve(module.address, OUTPUTS, "near_share"), history.steps)
            if len(near) >= 3 and float(np.median(near.value)) >= share:
                found.append(module.address)
    return found


def stopped_layers(history: History) -> list[str]:
    """Layers that pass nothing on from the first step: dead rectifiers, units at their ends."""
    found = []
    for module in leaves(history):
        kind = module.fact("activation")
        column = {"rectifier": "zero_share", "bounded": "near_share"}.get(str(kind))
        if column is not None:
            share = history.curve(module.address, OUTPUTS, column)
            if len(share) and float(share.value[0]) > 0.99:
                found.append(module.address)
    return found


def profile(
    history: History, quantity: str, column: str, chosen: list[SiteFacts], first: int, last: int
) -> list[tuple[str, float]]:
    """One number a layer, the median over some steps, in order of execution."""
    return [
        (module.address, float(np.median(part.value)))
        for module in chosen
        if len(part := history.curve(module.address, quantity, column).since(first).until(last))
    ]


def gradient_profile(history: History, first: int, last: int) -> list[tuple[str, float]]:
    """Root mean square of the gradient of each layer's output, in order of execution."""
    return profile(history, GRADS, "rms", weighted(history), first, last)


def fades(history: History, share: float = 1e-3) -> bool:
    """Whether the gradient is lost little by little, layer by layer, in the first steps."""
    sizes = [value for _, value in gradient_profile(history, 0, 10)]
    return len(sizes) >= 3 and 0 < sizes[0] < share * max(sizes)


def pairs(values: list[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    """Those that are finite and above zero."""
    for address, value in values:
        if np.isfinite(value) and value > 0:
            yield address, value
