"""The ways to choose a scale, by name: which fan, which gain, which distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from nethook.addresses.suggest import close_names
from nethook.errors import OptionError
from nethook.init.dataflow.fans import Layout
from nethook.init.plans.sampling import Distribution

# A decomposition of a larger matrix takes seconds, and at that width a normal one is as good.
_WIDEST = 2048


@dataclass(frozen=True, slots=True)
class Method:
    """A rule: std = gain / √fan, drawn from a distribution."""

    name: str
    fan: Literal["in", "average"]
    gain: Literal["exact", "torch", "one"]
    distribution: Distribution

    def std(self, gain: float, fans: tuple[float, float]) -> float:
        """The standard deviation of the weights."""
        fan = fans[0] if self.fan == "in" else sum(fans) / 2
        return gain / math.sqrt(fan) if fan > 0 else 0.0

    def drawn_from(self, shape: tuple[int, ...], layout: Layout) -> Distribution:
        """The distribution for one weight: an orthogonal one only where that is quick."""
        if layout.form == "lookup" and "orthogonal" in self.distribution:
            return "normal"  # rows are looked up one at a time; nothing is multiplied
        if self.name == "auto":
            rows = shape[0] * math.prod(shape[1:])
            small = min(shape[0], rows // max(shape[0], 1)) // max(layout.blocks, 1)
            return self.distribution if small <= _WIDEST else "normal"
        return self.distribution


_ALL = [
    Method("auto", "in", "exact", "orthogonal"),
    Method("he", "in", "torch", "normal"),
    Method("he_uniform", "in", "torch", "uniform"),
    Method("glorot", "average", "torch", "uniform"),
    Method("glorot_normal", "average", "torch", "normal"),
    Method("lecun", "in", "one", "truncated_normal"),
    Method("orthogonal", "in", "torch", "orthogonal"),
    Method("delta_orthogonal", "in", "exact", "delta_orthogonal"),
]
_METHODS = {method.name: method for method in _ALL}
_ALIASES = {
    "kaiming_normal": "he",
    "he_normal": "he",
    "kaiming_uniform": "he_uniform",
    "xavier_uniform": "glorot",
    "glorot_uniform": "glorot",
    "xavier_normal": "glorot_normal",
    "xavier": "glorot",
    "kaiming": "he",
    "lecun_normal": "lecun",
}


def find_method(name: str) -> Method:
    """The method of that name; `-` and `_` are the same, and so is torch's `_` at the end."""
    spelling = str(name).lower().replace("-", "_").rstrip("_")
    method = _METHODS.get(_ALIASES.get(spelling, spelling))
    if method is None:
        known_names = [*_METHODS, *_ALIASES]
        close = close_names(str(spelling), known_names) or list(_METHODS)
        shown = ", ".join(map(repr, close))
        raise OptionError(f"`method` must be the name of a method; got {name!r}. Closest: {shown}.")
    return method
