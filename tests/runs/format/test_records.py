"""Rows of a window, packed in blocks and back."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.errors import NotARunError
from nethook.runs.format.packing import pack
from nethook.runs.format.records import COLUMNS, Basis, pack_rows, unpack_rows
from nethook.runs.format.schema import BLOCK
from nethook.stats.fields import FIELDS, INDEX, WIDTH, empty_rows, merge_rows
from tests.runs.made import row, values

SERIES = BLOCK + 10  # two blocks


def made_rows() -> tuple[np.ndarray, np.ndarray, Basis]:
    rows = np.stack([row(values(at, 3)) for at in range(SERIES)])
    seen = np.ones(SERIES, dtype=np.int64)
    basis = Basis()
    for _ in range(SERIES):
        basis.add(units=4)
    return rows, seen, basis


def read_back(rows: np.ndarray, seen: np.ndarray, basis: Basis) -> dict[int, np.ndarray]:
    found = {}
    for block, data in pack_rows(rows, seen, basis):
        ((_, series, numbers),) = unpack_rows([data], block, basis)
        found.update(dict(zip(series.tolist(), numbers[0], strict=True)))
    return found


def test_rows_come_back_and_moments_to_13_digits() -> None:
    rows, seen, basis = made_rows()
    rows[:, INDEX["units"]] = 4
    assert basis.learn(rows) == list(range(SERIES))
    found = read_back(rows, seen, basis)
    assert sorted(found) == list(range(SERIES))
    for at, numbers in found.items():
        exact = [place for name, place in INDEX.items() if name not in ("mean", "m2")]
        assert numbers[exact].tolist() == rows[at, exact].tolist()
        deviation = np.sqrt(rows[at, INDEX["m2"]] / rows[at, INDEX["count"]])
        assert numbers[INDEX["m2"]] == pytest.approx(rows[at, INDEX["m2"]], rel=2e-13)
        assert abs(numbers[INDEX["mean"]] - rows[at, INDEX["mean"]]) <= 2e-13 * deviation
        assert numbers[-1] == 1


@pytest.mark.parametrize("mean", [0.0, 1.0, -1e6, 1e15])
@pytest.mark.parametrize("spread", [0.0, 1e-3, 1.0, 1e-200, 1e140])
def test_merging_what_was_kept_adds_no_error(mean: float, spread: float) -> None:
    random = np.random.default_rng(0)
    made = [row(mean + spread * random.normal(size=50)) for _ in range(2)]
    basis = Basis()
    basis.add(units=0)
    kept = [read_back(each[None], np.ones(1, dtype=np.int64), basis)[0][:WIDTH] for each in made]
    want, got = merge_rows(*made), merge_rows(*kept)
    assert got[INDEX["m2"]] == pytest.approx(want[INDEX["m2"]], rel=1e-12)
    assert got[INDEX["mean"]] == pytest.approx(want[INDEX["mean"]], rel=1e-12, abs=1e-12 * spread)


def test_a_mean_without_digits_to_spare_keeps_its_low_part() -> None:
    made = row(np.array([1e15, 1e15 + 2]))
    made[INDEX["mean_low"]] = 0.0625
    basis = Basis()
    basis.add(units=0)
    found = read_back(made[None], np.ones(1, dtype=np.int64), basis)[0]
    assert found[INDEX["mean"]] == made[INDEX["mean"]]
    assert found[INDEX["mean_low"]] == 0.0625


def test_series_that_were_not_measured_take_no_room() -> None:
    rows, seen, basis = made_rows()
    rows[5:], seen[5:] = empty_rows(SERIES - 5), 0
    records = dict(pack_rows(rows, seen, basis))
    assert list(records) == [0]
    ((_, series, _),) = unpack_rows([records[0]], 0, basis)
    assert series.tolist() == [0, 1, 2, 3, 4]


def test_what_could_not_be_summarised_is_kept_too() -> None:
    rows, seen, basis = made_rows()
    rows[...], seen[...] = empty_rows(SERIES), 0
    rows[7, INDEX["skipped"]] = 3
    assert read_back(rows, seen, basis)[7][INDEX["skipped"]] == 3


def test_a_record_of_another_version_is_read_by_names() -> None:
    basis = Basis()
    basis.add(units=0)
    data = pack(np.array([[0.0, 9.0, 5.0, 2.0]]))  # row, then three columns
    ((_, _, numbers),) = unpack_rows([data], 0, basis, ("later", "nan", "seen"))
    assert numbers[0, 0, INDEX["nan"]] == 5
    assert numbers[0, 0, COLUMNS.index("seen")] == 2
    assert numbers[0, 0, INDEX["min"]] == np.inf  # as in an empty row


def test_many_records_at_once_are_those_one_by_one() -> None:
    rows, seen, basis = made_rows()
    records = []
    for turn in range(12):
        some, measured = rows.copy(), seen.copy()
        some[:, INDEX["nan"]] = turn % 3  # kept in other ways
        measured[turn % 4], some[turn % 4] = 0, empty_rows(1)[0]  # other series
        records.append(next(data for block, data in pack_rows(some, measured, basis) if block == 0))
    found = {}
    for which, series, numbers in unpack_rows(records, 0, basis):
        found.update({at: (series, part) for at, part in zip(which, numbers, strict=True)})
    assert sorted(found) == list(range(12))
    for at, data in enumerate(records):
        ((_, series, numbers),) = unpack_rows([data], 0, basis)
        assert np.array_equal(found[at][0], series)
        assert np.array_equal(found[at][1], numbers[0])


@pytest.mark.parametrize("places", [[3, 99], [-1, 2], [2, 1], [0, 0]])
def test_series_that_do_not_exist_are_refused(places: list[int]) -> None:
    _, _, basis = made_rows()
    table = np.zeros((2, 1 + len(COLUMNS)))
    table[:, 0] = places
    with pytest.raises(NotARunError, match="series that the file does not have"):
        list(unpack_rows([pack(table)], 1, basis))


def test_the_columns_are_the_fields_and_what_was_seen() -> None:
    assert (*FIELDS, "seen") == COLUMNS
