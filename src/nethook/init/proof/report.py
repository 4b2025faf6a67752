"""What `verify` found: a row per layer with its verdict, a table and a figure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from nethook.errors import OptionError

LOW, HIGH = 0.5, 2.0
FAR = 30.0
"""Times too small or too large, from which on a signal vanishes or explodes; `checkup` warns there.

Nearer, a layer is "small" or "large": torch's own start makes every linear layer 0.58 times as
large as its input, and a head is often small on purpose.
"""
_ALIKE = 0.99
_WELL = ("ok", "cancelled", "zero")


@dataclass(frozen=True, slots=True)
class LayerScale:
    """One call of a layer: scales forward and backward, and whether inputs are still told apart."""

    address: str
    parameter: str
    forward: float
    backward: float
    ratio: float  # of the signal's scale to that of the layer before
    cosine: float  # mean over pairs of inputs
    expected: float = 1.0  # what the last layer of a residual branch should have is below 1
    cancelled_by: str = ""
    role: str = "weight"
    ends_branch: bool = False  # the last weight of a residual branch, which may start at zero

    @property
    def relative(self) -> float:
        """The scale of the signal against what is expected here; NaN where nothing is."""
        return self.forward / self.expected if self.expected else math.nan

    def verdict(self, low: float = LOW, high: float = HIGH) -> str:
        """In a word: "ok", or what is not as it should be.

        "small" and "large" are scales outside of `low` and `high` times what is expected,
        "vanishing" and "exploding" those that are 30 times off. "alike": inputs are no longer told
        apart. "not finite" speaks for itself. A scale that a norm cancels ("cancelled") and a
        residual branch that starts at zero ("zero") are well.
        """
        if not math.isfinite(self.forward):
            return "not finite"
        if self.ends_branch and self.forward == 0:
            return "zero"
        if self.cancelled_by:
            return "cancelled"
        if self.relative < min(low, 1 / FAR):
            return "vanishing"
        if self.relative > max(high, FAR):
            return "exploding"
        if self.cosine > _ALIKE:
            return "alike"
        if self.within(low, high):
            return "ok"
        return "small" if self.relative < low else "large"

    def within(self, low: float = LOW, high: float = HIGH) -> bool:
        """Whether the scale is right: between these times what is expected, or of no account."""
        if not math.isfinite(self.forward):
            return False
        if self.cancelled_by or (self.ends_branch and self.forward == 0):
            return True
        return not (self.relative < low or self.relative > high)  # NaN: nothing is expected


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """The scales of a model on a batch, layer by layer in order of execution."""

    model: str
    rows: tuple[LayerScale, ...]
    input_cosine: float
    warnings: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[LayerScale]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, address: str) -> LayerScale:
        for row in self.rows:
            if address in (row.address, row.parameter, row.address.partition("/")[0]):
                return row
        from nethook.addresses.suggest import closest
        from nethook.errors import NoSuchSiteError

        known_names = [row.address for row in self.rows]
        raise NoSuchSiteError(
            f"the report has no layer {address!r}. {closest(address, known_names, kind='layer')}"
        )

    def ok(
        self, low: float = LOW, high: float = HIGH, *, backward: tuple[float, float] | None = None
    ) -> bool:
        """Whether every layer's signal is between `low` and `high` times what it should be.

        Layers whose scale a norm cancels do not count. With `backward`, the gradient of every
        layer must also lie between these two, as a multiple of the last layer's.
        """
        if not 0 <= low <= high:
            raise OptionError(
                f"`low` must be at least 0 and at most `high`; got {low!r} and {high!r}."
            )
        forward = all(row.within(low, high) for row in self.rows)
        if backward is None or not forward:
            return forward
        smallest, largest = backward
        return all(smallest <= ratio <= largest for ratio in self.relative_gradients())

    def relative_gradients(self) -> list[float]:
        """The scale of each layer's gradient, as a multiple of the last layer's that has one."""
        gradients = [row.backward for row in self.rows if math.isfinite(row.backward)]
        last = gradients[-1] if gradients else math.nan
        return [row.backward / last if last else math.nan for row in self.rows]

    @property
    def gradient_ratio(self) -> float:
        """The gradient at the first layer over that at the last."""
        ratios = [ratio for ratio in self.relative_gradients() if math.isfinite(ratio)]
        return ratios[0] if ratios else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "model": self.model,
            "input_cosine": self.input_cosine,
            "warnings": list(self.warnings),
            "rows": [{**asdict(row), "verdict": row.verdict()} for row in self.rows],
        }

    def figure(self, *, theme: str = "light") -> Any:
        """A Plotly figure: scales forward and backward, and cosines, over depth."""
        from nethook.drawing.rendering.render import figure
        from nethook.drawing.scales import scales_over_depth

        return figure(scales_over_depth(self.to_dict()), theme)

    def _tables(self) -> list[Any]:
        from nethook.text.numbers import count
        from nethook.text.table import Table

        said = [row.verdict() for row in self.rows]
        bad = Counter(verdict for verdict in said if verdict not in _WELL)
        state = ", ".join(f"{times} {verdict}" for verdict, times in bad.items()) or "all well"
        title = f"scales of {self.model}: {count(len(self.rows), 'layer')}, {state}"
        columns = ["layer", "forward", "expected", "ratio", "backward", "cosine", "verdict"]
        rows = [
            (row.address, f"{row.forward:.4g}", _number(row.expected), _number(row.ratio),
             _number(row.backward), _number(row.cosine), verdict)
            for row, verdict in zip(self.rows, said, strict=True)
        ]  # fmt: skip
        right = frozenset({"forward", "expected", "ratio", "backward", "cosine"})
        tables = [Table(title, columns, rows, right)]
        if self.warnings:
            told = count(len(self.warnings), "warning").upper()
            tables.append(Table(told, ["", "what"], [("!", warning) for warning in self.warnings]))
        return tables

    def __repr__(self) -> str:
        return "\n\n".join(table.text() for table in self._tables())

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self._tables())


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4g}"
