"""The quantities that a heatmap, a profile or a panel can show, each with one sentence."""

from __future__ import annotations

from typing import Final

from nethook.drawing.data import Quantity

_ALL: Final = (
    Quantity(
        "gradients", "Gradient norm of parameters",
        "Norm of each parameter's gradient as the optimizer uses it.", "norm", "log",
    ),
    Quantity(
        "output_gradients", "Gradient norm at outputs",
        "Norm of the gradient of the loss with respect to what a layer returned.", "norm", "log",
    ),
    Quantity(
        "updates", "Update by weight",
        "Size of a step's change of a parameter by its own size; about 0.001 is usual.",
        "update / weight", "log",
    ),
    Quantity(
        "silent", "Dead units",
        "Share of a layer's units that were zero for every sample of a whole span of steps.",
        "of the units", "share",
    ),
    Quantity(
        "ends", "Near the ends",
        "Share of a bounded activation's outputs within 3 % of either end, where gradients vanish.",
        "of the outputs", "share",
    ),
    Quantity(
        "spread", "Spread of outputs",
        "Standard deviation of what a layer returned; alike over depth in a good start.",
        "standard deviation", "log",
    ),
    Quantity(
        "mean", "Mean of outputs", "Mean of what a layer returned.", "mean", "signed",
    ),
    Quantity(
        "zeros", "Zeros in outputs",
        "Share of exact zeros in what a layer returned; half is usual after a rectifier.",
        "of the outputs", "share",
    ),
    Quantity(
        "nonfinite", "NaN and infinities",
        "Share of NaN and infinite numbers among a layer's outputs and their gradients.",
        "of the elements", "share",
    ),
    Quantity(
        "weights", "Size of parameters",
        "Root mean square of each parameter.", "root mean square", "log",
    ),
)  # fmt: skip

QUANTITIES: Final = {quantity.name: quantity for quantity in _ALL}
"""Name -> quantity, in the order in which they are offered."""
