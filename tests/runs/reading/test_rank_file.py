"""What one rank wrote: a part of it is what the whole has there, and nonsense is refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

import nethook
from nethook.errors import NotARunError
from nethook.runs.reading.rank_file import RankFile
from tests.figures.shared import training
from tests.runs.made import UNITS, values, write_run


@pytest.mark.parametrize(
    "between", [(0, 0), (17, 40), (100, 10_000), (-5, 3), (0, 119), (500, 600)]
)
def test_windows_that_have_steps_in_between(between: tuple[int, int]) -> None:
    run = nethook.open_run(training())
    keys = [("conv1", "outputs"), ("fc2.bias", "updates"), ("@loop", "grad_norm")]
    for whole, part in zip(run.many(keys), run.many(keys, between=between), strict=True):
        there = (whole.last_step >= between[0]) & (whole.first_step <= between[1])
        np.testing.assert_array_equal(part.first_step, whole.first_step[there])
        np.testing.assert_array_equal(part.seen, whole.seen[there])
        np.testing.assert_array_equal(part.rows, whole.rows[there])


def test_of_evaluation_too() -> None:
    run = nethook.open_run(training())
    key = [next((i.address, i.quantity) for i in run.catalogue if i.quantity == "loss")]
    assert run.many(key, "eval", between=(40, 60))[0].last_step.tolist() == [50]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_run(tmp_path / "a.db", 20, 70)
    return tmp_path / "a.db"


def change(path: Path, statement: str) -> RankFile:
    """The file, after somebody has changed it."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()
    return RankFile(path)


def test_the_catalogue_is_in_the_order_of_the_rows(path: Path) -> None:
    file = RankFile(path)
    infos, basis = file.series()
    assert [info.address for info in infos] == [f"layer{index}" for index in range(70)]
    assert file.ids()["layer69", "outputs"] == 69
    assert file.series()[0] is infos  # nothing was added: not read again
    assert len(basis) == 70
    assert basis.units == [UNITS] * 70
    assert [site.address for site in file.sites()] == [info.address for info in infos]
    assert file.last_step() == 19


def test_rows_of_series_of_several_blocks(path: Path) -> None:
    windows, rows = RankFile(path).rows("train", [69, 3])
    assert windows.last_step.tolist() == list(range(20))
    series = nethook.open_run(path)
    for index, address in enumerate(("layer69", "layer3")):
        np.testing.assert_array_equal(rows[:, index, :-1], series.series(address).rows)
    np.testing.assert_allclose(
        series.series("layer69")["mean"], [values(69, step).mean() for step in range(20)]
    )


@pytest.mark.parametrize("level", [0, 1])
def test_the_course_of_a_level_has_every_extreme(path: Path, level: int) -> None:
    parts, course = RankFile(path).courses("train", [5], 20, level)
    assert parts[0] == (0, 8 if level else 1)
    assert parts[-1][1] == 20
    data = np.stack([values(5, step) for step in range(20)])
    for (begin, end), point in zip(parts, course[:, 0], strict=True):
        means = data[begin:end].mean(axis=1)
        # 12 bits of mantissa, rounded outwards.
        np.testing.assert_allclose(point[0, 0], means.min(), rtol=2**-11)
        np.testing.assert_allclose(point[1, 0], means.max(), rtol=2**-11)
        if level and end - begin > 1:
            assert point[0, 0] <= means.min()
            assert point[1, 0] >= means.max()


@pytest.mark.parametrize(
    ("statement", "ask", "words"),
    [
        ("UPDATE series SET id = 99 WHERE id = 3", "series", "series that are not in order"),
        ("UPDATE series SET units = -1 WHERE id = 3", "series", "series that are not in order"),
        ("UPDATE series SET units = 'x' WHERE id = 3", "series", "where a whole number belongs"),
        ("UPDATE info SET value = '{}' WHERE key = 'layout'", "columns", "does not say how"),
        ("UPDATE info SET value = '[' WHERE key = 'layout'", "info", "cannot be read"),
        ("UPDATE windows SET first_step = 2.5", "windows", "where a whole number belongs"),
        ("DELETE FROM windows WHERE last_step = 3", "windows", "windows that are not in order"),
        ("UPDATE sites SET info = '3'", "sites", "where an object belongs"),
    ],
)
def test_numbers_that_nethook_never_writes_are_refused(
    tmp_path: Path, statement: str, ask: str, words: str
) -> None:
    write_run(tmp_path / "a.db", 5, 4)
    file = change(tmp_path / "a.db", statement)
    with pytest.raises(NotARunError, match=words):
        getattr(file, ask)(*(["train"] if ask == "windows" else []))
