"""What `calibrate_` did: a row per weight, and what it left alone."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Calibrated:
    """One weight: the scale of its output before and after, and the factor it was given."""

    parameter: str
    address: str
    before: float
    after: float
    target: float
    factor: float
    note: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Calibration:
    """What `nethook.init.calibrate_` did.

    `rows` are the weights that were set, `left` those that were not, with the reasons; `shared`
    those that serve in more than one place, of which the first decided, with the number of places.
    """

    model: str
    target: float
    rows: tuple[Calibrated, ...]
    left: tuple[tuple[str, str], ...]
    shared: tuple[tuple[str, int], ...]
    forwards: int

    def __iter__(self) -> Iterator[Calibrated]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def largest_change(self) -> float:
        """The largest relative change of a weight: 0 for a model that was calibrated before."""
        return max((abs(row.factor - 1) for row in self.rows), default=0.0)

    def after(self, first: Calibration) -> Calibration:
        """This one, as the second forward of two; scales before are those of the first."""
        was = {row.parameter: row.before for row in first.rows}
        rows = tuple(replace(r, before=was.get(r.parameter, r.before)) for r in self.rows)
        return replace(self, rows=rows, forwards=self.forwards + first.forwards)

    def without(self, cancelled: Any) -> Calibration:
        """This one without weights that a norm makes of no account."""
        names: Container[str] = cancelled
        left = [
            (row.parameter, cancelled[row.parameter].not_calibrated)
            for row in self.rows
            if row.parameter in names
        ]
        rows = tuple(row for row in self.rows if row.parameter not in names)
        return replace(self, rows=rows, left=(*self.left, *left))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "model": self.model,
            "target": self.target,
            "forwards": self.forwards,
            "rows": [asdict(row) for row in self.rows],
            "left": dict(self.left),
            "shared": dict(self.shared),
        }

    def _tables(self) -> list[Any]:
        from nethook.text.numbers import count
        from nethook.text.table import Table

        title = (
            f"{count(len(self.rows), 'weight')} of {self.model} calibrated in "
            f"{count(self.forwards, 'forward')}"
        )
        columns = ["parameter", "before", "after", "target", "factor", "note"]
        numbers = frozenset({"before", "after", "target", "factor"})
        rows = [
            (r.parameter, f"{r.before:.4g}", f"{r.after:.6g}", f"{r.target:.4g}", f"{r.factor:.4g}",
             r.note)
            for r in self.rows
        ]  # fmt: skip
        tables = [Table(title, columns, rows, numbers)]
        if self.left:
            told = f"NOT CALIBRATED: {count(len(self.left), 'parameter')}"
            tables.append(Table(told, ["parameter", "reason"], self.left))
        if self.shared:
            places = [
                (name, f"in {number} places: the first decided") for name, number in self.shared
            ]
            tables.append(Table("SHARED", ["parameter", "where"], places))
        return tables

    def __repr__(self) -> str:
        return "\n\n".join(table.text() for table in self._tables())

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self._tables())
