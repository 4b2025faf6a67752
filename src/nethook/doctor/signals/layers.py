"""The layers of a network as rules see them: in order of execution, with their numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from nethook.doctor.history import NOTHING, Curve, History, SiteFacts
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import GRADS, INPUTS, OUTPUTS, PARAMS


def leaves(history: History) -> list[SiteFacts]:
    """Modules without modules below them that were called, in the order of their first calls."""
    called = [module for module in history.modules if module.fact("leaf")]
    called = [module for module in called if module.fact("first_call") is not None]
    return sorted(called, key=lambda module: int(module.fact("first_call")))


def mode_changes(module: SiteFacts, phase: str) -> list[tuple[int, bool]]:
    """The steps at which a module's `training` flag changed in a phase, and what it was then.

    A flag that never changed is noted once, for the phase in which the module was seen first.
    """
    changes = [change for change in module.fact("modes", []) if len(change) == 3]
    return [(int(step), bool(training)) for step, seen_in, training in changes if seen_in == phase]


def weighted(history: History) -> list[SiteFacts]:
    """Those of them that have parameters and are not norms: what a signal passes through."""
    return [
        module
        for module in leaves(history)
        if module.fact("parameters") and module.fact("activation") != "norm"
    ]


def first_layer(history: History) -> str:
    """What the first layer is: `norm`, `embedding` (of whole numbers), or whatever else."""
    dtype = str(history.series_fact("", INPUTS, "dtype", ""))
    if "int" in dtype or "bool" in dtype:
        return "embedding"
    called = leaves(history)
    return str(called[0].fact("activation", "")) if called else ""


def late(curve: Curve, steps: int) -> Curve:
    """The second half of a run, what has become of it; thinned, the last that was measured."""
    return measured(curve, curve.since(steps // 2))


def measured(curve: Curve, chosen: Curve, least: int = 3) -> Curve:
    """A part of a curve; where a budget has left next to nothing of it, the end of all there is."""
    return (
        chosen if len(chosen) >= least else curve.where(np.arange(len(curve)) >= len(curve) - least)
    )


def activated_by(history: History) -> dict[str, str]:
    """Layers whose output goes straight into a function: `torch.tanh(self.fc1(x))`."""
    ops = [op for op in history.info("ops", []) if isinstance(op, dict)]
    kinds = {module.address: module.fact("activation") for module in leaves(history)}
    functions: dict[str, str] = {}
    for op in ops:
        sources = [
            source for source in op.get("from") or [] if isinstance(source, int) and source >= 0
        ]
        if op.get("op") in _FUNCTIONS and len(sources) == 1 and sources[0] < len(ops):
            site = str(ops[sources[0]].get("site"))
            # An activation that is a module has numbers of its own.
            if kinds.get(site) == "linear" and str(op.get("site")) not in kinds:
                functions[site] = str(op["op"])
    return functions


def near_ends(history: History, module: SiteFacts, functions: dict[str, str]) -> Curve:
    """The share of a bounded activation's outputs that are within 3 % of either end.

    For a function it follows from mean and spread of what goes in, taken as normally distributed.
    """
    if module.fact("activation") == "bounded":
        return history.curve(module.address, OUTPUTS, "near_share")
    end = _ENDS.get(functions.get(module.address, ""))
    mean = history.curve(module.address, OUTPUTS, "mean")
    std = history.curve(module.address, OUTPUTS, "std")
    if end is None or len(mean) != len(std):
        return NOTHING
    apart = np.maximum(std.value, 1e-30) * math.sqrt(2)
    share = [
        1 - 0.5 * (math.erf((end - center) / by) - math.erf((-end - center) / by))
        for center, by in zip(mean.value.tolist(), apart.tolist(), strict=True)
    ]
    return Curve(mean.step, np.asarray(share), mean.steps)


# From where on tanh is above 0.97 (atanh 0.97) and sigmoid within 3 % of an end (ln 0.97 / 0.03).
_ENDS = {"tanh": 2.0923, "sigmoid": 3.4761}
_FUNCTIONS = ("relu", "tanh", "sigmoid")

NEAR_READS: Final = (
    "info.ops",
    "module.activation",
    "module.first_call",
    "module.leaf",
    "series.outputs.mean",
    "series.outputs.near_share",
    "series.outputs.std",
)
"""The fields that `saturated_layers` reads."""

STOPPED_READS: Final = (*NEAR_READS, "series.outputs.max", "series.outputs.zero_share")
"""The fields that `stopped_layers` reads."""


def saturated_layers(history: History, share: float = 0.8) -> dict[str, float]:
    """Layers of bounded activations of which most outputs are near their ends, for long."""
    functions = activated_by(history)
    shares = {}
    for module in leaves(history):
        near = late(near_ends(history, module, functions), history.steps)
        if len(near) >= 3 and median(near.value) >= share:
            shares[module.address] = median(near.value)
    return shares


def stopped_layers(history: History) -> list[str]:
    """Layers that pass nothing on from the first step: dead rectifiers, units at their ends."""
    functions = activated_by(history)
    stopped = []
    for module in leaves(history):
        if module.fact("activation") == "rectifier":
            share = history.curve(module.address, OUTPUTS, "zero_share")
            stops = len(share) and float(share.value[0]) > 0.99
        elif functions.get(module.address) == "relu":
            most = history.curve(module.address, OUTPUTS, "max")
            stops = len(most) and float(most.value[0]) <= 0
        else:
            share = near_ends(history, module, functions)
            stops = len(share) and float(share.value[0]) > 0.99
        if stops:
            stopped.append(module.address)
    return stopped


def profile(
    history: History, quantity: str, column: str, chosen: list[SiteFacts], first: int, last: int
) -> list[tuple[str, float]]:
    """One number per layer, the median over some steps, in order of execution."""
    return [
        (module.address, median(values.value))
        for module in chosen
        if len(values := history.curve(module.address, quantity, column).since(first).until(last))
    ]


def gradient_profile(history: History, first: int, last: int) -> list[tuple[str, float]]:
    """Root mean square of the gradient of each layer's output, in order of execution.

    Where a budget has left nothing of these steps, what was measured last.
    """
    sizes = []
    for module in weighted(history):
        curve = history.curve(module.address, GRADS, "rms")
        chosen = measured(curve, curve.since(first).until(last), least=1)
        if len(chosen):
            sizes.append((module.address, median(chosen.value)))
    return sizes


def norm_of_weights(history: History) -> float:
    """The norm of all parameters when they were measured first; 1 where they were not."""
    total = 0.0
    for parameter in history.parameters:
        rms = history.curve(parameter.address, PARAMS, "rms")
        if len(rms) and np.isfinite(rms.value[0]):
            total += float(rms.value[0]) ** 2 * int(parameter.fact("elements", 0))
    return math.sqrt(total) or 1.0


def fades(history: History, share: float = 1e-3) -> bool:
    """Whether the gradient is lost little by little, layer by layer, in the first steps."""
    sizes = [value for _, value in gradient_profile(history, 0, 10)]
    return len(sizes) >= 3 and 0 < sizes[0] < share * max(sizes)


def pairs(values: list[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    """Those that are finite and above zero."""
    for address, value in values:
        if np.isfinite(value) and value > 0:
            yield address, value
