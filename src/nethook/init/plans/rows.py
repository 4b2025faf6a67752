"""A plan: what each parameter of a model will be, and why. Plain data that can be read first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from nethook.errors import InitError
from nethook.init.dataflow.fans import Layout
from nethook.init.plans.sampling import Distribution

_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One parameter: the part it plays, and what it will be.

    `distribution` is None where the parameter is left as it is; `reason` says why. `std` is the
    standard deviation of the weights, or the value of a constant. `calibrated` is the reason why
    `calibrate_` will not touch it, empty where it will.
    """

    parameter: str
    role: str
    shape: tuple[int, ...]
    distribution: Distribution | None
    std: float | None
    reason: str
    fan_in: float | None = None
    fan_out: float | None = None
    fed_by: str = ""
    feeds: str = ""
    residual: tuple[int, int] | None = None  # which add of its stream it meets, of how many
    target: float | None = None  # the scale that its output should have
    cancelled_by: str = ""  # the norm that makes its scale of no account
    layout: Layout | None = None
    mirror: tuple[bool, bool] = (False, False)  # outputs, inputs: in pairs of opposite sign
    ones: tuple[int, int] | None = None  # entries that are 1: the forget gate of an LSTM
    zero_row: int | None = None  # the padding of an embedding
    value_block: int | None = None  # which block of a packed projection holds the values
    not_calibrated: str = ""
    names: tuple[str, ...] = ()

    @property
    def touched(self) -> bool:
        """Whether `apply_` will write it."""
        return self.distribution is not None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """What `nethook.init.apply_` will do to a model: a row per parameter, in model order.

    plan = nethook.init.plan(model, inputs)
    plan["fc1.weight"].std, plan["fc1.weight"].reason
    plan.untouched                          # what it leaves alone, with the reasons
    plan.diff(nethook.init.plan(model, inputs, method="he"))
    """

    model: str
    method: str
    rows: tuple[PlanRow, ...]
    warnings: tuple[str, ...] = ()
    residual_adds: int = 0

    @property
    def untouched(self) -> tuple[PlanRow, ...]:
        """The parameters that stay as they are."""
        return tuple(row for row in self.rows if not row.touched)

    def __iter__(self) -> Iterator[PlanRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> PlanRow:
        for row in self.rows:
            if name == row.parameter or name in row.names:
                return row
        from nethook.addresses.suggest import closest
        from nethook.errors import NoSuchSiteError

        known_names = [row.parameter for row in self.rows]
        raise NoSuchSiteError(
            f"the plan has no parameter {name!r}. {closest(name, known_names, kind='parameter')}"
        )

    # -- plain data ---------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without any tensor."""
        return {
            "schema": _SCHEMA,
            "model": self.model,
            "method": self.method,
            "warnings": list(self.warnings),
            "residual_adds": self.residual_adds,
            "rows": [row.to_dict() for row in self.rows],
        }

    def to_json(self) -> str:
        """The plan as text, for a file or a review."""
        return json.dumps(self.to_dict(), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """A plan that `to_json` wrote; nothing in it is executed."""
        try:
            data = json.loads(text)
            if data["schema"] != _SCHEMA:
                raise InitError(
                    f"`text` must be a plan of schema {_SCHEMA}; got schema {data['schema']}."
                )
            rows = tuple(_row(row) for row in data["rows"])
            return cls(
                str(data["model"]), str(data["method"]), rows, tuple(map(str, data["warnings"])),
                int(data["residual_adds"]),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InitError):
                raise
            raise InitError(
                "`text` must be a plan that `to_json` wrote; got something else "
                f"({type(error).__name__}: {error})."
            ) from error

    def diff(self, other: Plan) -> PlanDiff:
        """What differs between this plan and another one."""
        mine = {row.parameter: row for row in self.rows}
        theirs = {row.parameter: row for row in other.rows}
        changes = []
        for name in dict.fromkeys([*mine, *theirs]):
            a, b = mine.get(name), theirs.get(name)
            if a is None or b is None:
                where = "this plan" if b is None else "the other"
                changes.append(Change(name, "parameter", f"only in {where}", ""))
                continue
            for key in _COMPARED:
                was, now = getattr(a, key), getattr(b, key)
                if was != now:
                    changes.append(Change(name, key, _text(was), _text(now)))
        return PlanDiff(self.method, other.method, tuple(changes))

    # -- looks --------------------------------------------------------------------------------

    def _tables(self) -> list[Any]:
        from nethook.text.numbers import count
        from nethook.text.table import Table

        touched = [row for row in self.rows if row.touched]
        title = f"plan for {self.model} ({self.method}): {count(len(touched), 'parameter')} to set"
        columns = ["parameter", "role", "fans", "fed by", "feeds", "drawn", "std", "reason"]
        rows = [_cells(row) for row in touched]
        tables = [Table(title, columns, rows, frozenset({"std", "fans"}))]
        if self.untouched:
            left = f"NOT TOUCHED: {count(len(self.untouched), 'parameter')}"
            cells = [(row.parameter, row.role, row.reason) for row in self.untouched]
            tables.append(Table(left, ["parameter", "role", "reason"], cells))
        if self.warnings:
            told = count(len(self.warnings), "warning").upper()
            tables.append(Table(told, ["", "what"], [("!", warning) for warning in self.warnings]))
        return tables

    def __repr__(self) -> str:
        return "\n\n".join(table.text() for table in self._tables())

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self._tables())


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two plans."""

    parameter: str
    field: str
    first: str
    second: str


@dataclass(frozen=True, slots=True, repr=False)
class PlanDiff:
    """What differs between two plans; empty, and false, where nothing does."""

    first: str
    second: str
    changes: tuple[Change, ...]

    def __len__(self) -> int:
        return len(self.changes)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "first": self.first,
            "second": self.second,
            "changes": [asdict(change) for change in self.changes],
        }

    def _table(self) -> Any:
        from nethook.text.numbers import count
        from nethook.text.table import Table

        title = f"{count(len(self), 'difference')} between {self.first} and {self.second}"
        rows = [
            (change.parameter, change.field, change.first, change.second) for change in self.changes
        ]
        return Table(title, ["parameter", "what", "first", "second"], rows)

    def __repr__(self) -> str:
        return str(self._table().text())

    def _repr_html_(self) -> str:
        return str(self._table().html())


_COMPARED = (
    "role", "shape", "distribution", "std", "fan_in", "fan_out", "fed_by", "feeds", "residual",
    "cancelled_by", "mirror",
)  # fmt: skip


def _cells(row: PlanRow) -> tuple[str, ...]:
    fans = "" if row.fan_in is None else f"{row.fan_in:g} → {row.fan_out:g}"
    drawn = str(row.distribution)
    if any(row.mirror):
        drawn = f"mirrored {drawn}"
    std = "" if row.std is None else f"{row.std:.4g}"
    return (row.parameter, row.role, fans, row.fed_by, row.feeds, drawn, std, row.reason)


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _row(data: dict[str, Any]) -> PlanRow:
    known_names = {field.name for field in fields(PlanRow)}
    given = {key: value for key, value in data.items() if key in known_names}
    for key in ("shape", "residual", "mirror", "ones", "names"):
        if given.get(key) is not None:
            given[key] = tuple(given[key])
    if given.get("layout") is not None:
        given["layout"] = Layout(**given["layout"])
    return PlanRow(**given)
