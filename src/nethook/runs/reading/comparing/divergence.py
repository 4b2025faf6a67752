"""Where two runs part: the first step, and the first place in it, at which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nethook.runs import names
from nethook.runs.reading.comparing.facts import differing_facts
from nethook.runs.reading.run import Run

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LIMITS: Final = ((0.0, "a digit"), (0.01, "1 %"), (0.1, "10 %"), (0.5, "a factor of 2"))
"""How far apart two runs can be, relative to the larger number, and what it is called."""

_CHUNK: Final = 64  # series that are read at once: their records lie together
_COMPARED: Final = ("mean", "std")

# The walk of a number through a step: what comes earlier is nearer to the cause.
_WALK: Final = (
    names.INPUTS, names.BATCH_SIZE, names.INPUT_SPREAD, names.OUTPUTS, names.LOSS, names.GRADS,
    names.UNCLIPPED, names.PARAM_GRADS, names.GRAD_NORM, names.UPDATES, names.PARAMS,
)  # fmt: skip
_BACKWARD: Final = (names.GRADS, names.UNCLIPPED, names.PARAM_GRADS)
_IGNORED: Final = (names.STEP_SECONDS, names.WATCH_SECONDS, names.UPDATE_COSINE)


@dataclass(frozen=True)
class Point:
    """The first place at which two runs are farther apart than a limit."""

    limit: float
    words: str
    step: int
    address: str
    quantity: str
    first: float
    second: float
    column: str


@dataclass(frozen=True)
class Parting:
    """How two runs differ.

    `points` has the first place for each limit that is passed; `difference` (rows, windows) is the
    largest relative difference of what is recorded of a site, NaN where there is none.
    """

    points: tuple[Point, ...]
    compared: int
    windows: int
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    facts: tuple[tuple[str, str, str], ...]
    rows: tuple[str, ...] = ()
    first_step: Integers = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    last_step: Integers = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    difference: Floats = field(default_factory=lambda: np.zeros((0, 0)), repr=False)

    @property
    def same(self) -> bool:
        """Whether everything that both have is equal."""
        return not self.points


def find_parting(first: Run, second: Run, phase: str = "train") -> Parting:
    """Compare two runs, window by window, wherever both measured the same steps.

    Windows are compared that have the same steps in both and were measured in all of them (or
    equally often); times are not. Within a step what runs earlier comes first: inputs, outputs in
    order of execution, losses, gradients from the last layer to the first, updates, parameters.
    """
    ours = {(info.address, info.quantity): info for info in first.catalogue}
    theirs = {(info.address, info.quantity): info for info in second.catalogue}
    keys = [key for key in ours if key in theirs and key[1] not in _IGNORED]
    keys = _in_order(keys, first)
    candidates: list[tuple[int, int, Point]] = []  # window, place in the walk, point
    rows: dict[str, Floats] = {}
    steps: tuple[Integers, Integers] | None = None
    for start in range(0, len(keys), _CHUNK):
        chunk = keys[start : start + _CHUNK]
        for index, (one, two) in enumerate(
            zip(first.many(chunk, phase), second.many(chunk, phase), strict=True)
        ):
            left, right = _common(one, two)
            if steps is None:
                steps = (one.first_step[left], one.last_step[left])
            usable = one.seen[left] == two.seen[right]
            usable &= one.seen[left] > 0
            apart = np.full(len(left), np.nan)
            columns = {}
            for column in _COMPARED:
                a, b = one[column][left], two[column][right]
                columns[column] = (a, b)
                apart = np.fmax(apart, _distance(a, b, one, left))
            apart[~usable] = np.nan
            candidates += _points(apart, columns, (start + index, chunk[index]), steps[1])
            if not chunk[index][0].startswith("@"):
                row = rows.setdefault(chunk[index][0], np.full(len(left), np.nan))
                np.fmax(row, apart, out=row)
    points = []
    for limit, _ in LIMITS:
        mine = [entry for entry in candidates if entry[2].limit == limit]
        if mine:
            points.append(min(mine, key=lambda entry: entry[:2])[2])
    shown = {address: np.where(row > 0, row, np.nan) for address, row in rows.items()}
    empty = np.zeros(0, np.int64)
    begin, end = steps or (empty, empty)
    return Parting(
        tuple(points),
        len(keys),
        len(begin),
        _only(ours, theirs),
        _only(theirs, ours),
        differing_facts(first, second),
        tuple(shown),
        begin,
        end,
        np.stack(list(shown.values())) if shown else np.zeros((0, len(begin))),
    )


def _common(one: Any, two: Any) -> tuple[Integers, Integers]:
    """The windows that both runs have: the same first and last step."""
    _, left, right = np.intersect1d(one.first_step, two.first_step, return_indices=True)
    same = one.last_step[left] == two.last_step[right]
    return left[same], right[same]


def _distance(a: Floats, b: Floats, one: Any, left: Integers) -> Floats:
    """|a − b|, relative to the size of the numbers that were summarised; equal is exactly 0."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        size = np.fmax(np.fmax(np.abs(a), np.abs(b)), one["std"][left])
        apart: Floats = np.abs(a - b) / size
    apart[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
    apart[np.isnan(a) != np.isnan(b)] = np.inf  # a number in one, none in the other
    return apart


def _points(
    apart: Floats,
    columns: dict[str, tuple[Floats, Floats]],
    key: tuple[int, tuple[str, str]],
    last_step: Integers,
) -> list[tuple[int, int, Point]]:
    points = []
    position, (address, quantity) = key
    for limit, words in LIMITS:
        over = np.flatnonzero(apart > limit)
        if not over.size:
            break
        window = int(over[0])
        # The column that is farther apart is the one to name.
        column = max(columns, key=lambda name: _gap(columns[name], window))
        a, b = columns[column]
        point = Point(
            limit, words, int(last_step[window]), address, quantity,
            float(a[window]), float(b[window]), column,
        )  # fmt: skip
        points.append((window, position, point))
    return points


def _gap(pair: tuple[Floats, Floats], window: int) -> float:
    a, b = float(pair[0][window]), float(pair[1][window])
    if np.isnan(a) or np.isnan(b):
        return 0.0 if np.isnan(a) and np.isnan(b) else np.inf
    return abs(a - b) / (max(abs(a), abs(b)) or 1.0)


def _in_order(keys: Sequence[tuple[str, str]], run: Run) -> list[tuple[str, str]]:
    """Series in the order in which a step comes to them."""
    sites = {site.address: site for site in run.sites}
    places = {}
    for index, (address, site) in enumerate(sites.items()):
        call = site.info.get("first_call")
        places[address] = call if isinstance(call, int) else index
    for address, site in sites.items():
        owners = site.info.get("owners")
        if isinstance(owners, list) and owners and owners[0] in places:
            places[address] = places[owners[0]]

    def rank(key: tuple[str, str]) -> tuple[int, int]:
        address, quantity = key
        base = quantity.partition(":")[0]
        walk = _WALK.index(base) if base in _WALK else len(_WALK)
        position = places.get(address, 0 if address.startswith("@") else len(places))
        return walk, -position if base in _BACKWARD else position

    return sorted(keys, key=rank)


def _only(ours: Any, theirs: Any) -> tuple[str, ...]:
    """Sites that one has and the other has not."""
    others = {address for address, _ in theirs}
    return tuple(dict.fromkeys(a for a, _ in ours if a not in others and not a.startswith("@")))
