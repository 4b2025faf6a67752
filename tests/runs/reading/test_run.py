"""Reading a run: `nethook.open_run`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import nethook
from nethook.errors import NoSuchRunError, NoSuchSiteError, OptionError
from nethook.runs.format.levels import SHOWN
from nethook.runs.writing.writer import RunWriter
from nethook.stats.fields import INDEX
from tests.runs.made import ELEMENTS, UNITS, fold, histogram, row, values, write_run


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs") / "mnist.db"
    # Two blocks of series, of which some are measured, and all overview levels.
    write_run(made, 700, 70, measured=(0, 1, 3, 7, 63, 64, 65, 69))
    return made


@pytest.fixture(scope="module")
def run(path: Path):
    with nethook.open_run(path) as opened:
        yield opened


def test_a_series_is_what_numpy_computes(run) -> None:
    for at in (0, 63, 64, 69):
        series = run.series(f"layer{at}")
        assert len(series) == 700
        assert series.first_step.tolist() == series.last_step.tolist() == list(range(700))
        assert (series.seen == series.steps).all()
        assert (series.coverage == 1).all()
        data = np.stack([values(at, step) for step in range(700)])
        assert series["mean"] == pytest.approx(data.mean(axis=1), rel=1e-12, abs=1e-12)
        assert series["std"] == pytest.approx(data.std(axis=1), rel=1e-12)
        assert series["rms"] == pytest.approx(np.sqrt((data**2).mean(axis=1)), rel=1e-12)
        assert np.array_equal(series["min"], data.min(axis=1))
        assert np.array_equal(series["max"], data.max(axis=1))
        assert np.array_equal(series["zero_share"], (data == 0).mean(axis=1))
        assert (series["count"] == ELEMENTS).all()
        total = series.total()
        assert total["m2"] == pytest.approx(((data - data.mean()) ** 2).sum(), rel=1e-12)


def test_many_series_in_one_go(run) -> None:
    keys = [("layer69", "outputs"), ("layer0", "outputs")]
    many = run.many(keys)
    for key, series in zip(keys, many, strict=True):
        assert series.address == key[0]
        assert np.array_equal(series.rows, run.series(*key).rows)


def test_histograms_hold_every_element_once(run) -> None:
    found = run.histograms("layer65")
    assert len(found) <= 256
    assert found.first_step[0] == 0
    assert found.last_step[-1] == 699
    assert np.array_equal(found.first_step[1:], found.last_step[:-1] + 1)
    for at in (0, len(found) // 2, len(found) - 1):
        steps = range(found.first_step[at], found.last_step[at] + 1)
        want = sum(histogram(values(65, step)) for step in steps)
        assert np.array_equal(found.counts[at], want)


def test_quantiles_are_within_nine_percent(run) -> None:
    spans = run.histograms("layer3")
    q = (0.01, 0.25, 0.5, 0.9, 1.0)
    found = run.quantiles("layer3", q=q)
    assert found.shape == (len(spans), 5)
    for at in (0, 100, len(spans) - 1):
        steps = range(spans.first_step[at], spans.last_step[at] + 1)
        data = np.concatenate([values(3, step) for step in steps])
        want = np.quantile(data, q, method="inverted_cdf")
        assert found[at] == pytest.approx(want, rel=0.09)
    assert run.quantiles("layer3", q=0.5).shape == (len(spans), 1)
    with pytest.raises(OptionError, match="between 0 and 1"):
        run.quantiles("layer3", q=1.5)


def test_units_were_active_when_they_were(run) -> None:
    units = run.units("layer7")
    assert units.active.shape == (len(units), UNITS)
    for at in (0, len(units) - 1):
        steps = range(units.first_step[at], units.last_step[at] + 1)
        data = np.stack([values(7, step)[:UNITS] for step in steps])
        assert np.array_equal(units.active[at], (np.abs(data) > 0.5).any(axis=0))
    assert ((units.dead_share >= 0) & (units.dead_share <= 1)).all()


@pytest.mark.parametrize(("points", "most"), [(1000, 700), (256, 94), (20, 24), (1, 20)])
def test_an_overview_has_every_extreme(run, points: int, most: int) -> None:
    overview = run.overview(points=points)
    assert len(overview) <= most
    assert overview.first_step[0] == 0
    assert overview.last_step[-1] == 699
    for at in (0, 63, 69):
        std = np.array([values(at, step).std() for step in range(700)])
        place = overview.keys.index((f"layer{at}", "outputs"))
        for point in range(len(overview)):
            steps = slice(overview.first_step[point], overview.last_step[point] + 1)
            least, greatest = (
                overview.least("std")[point, place],
                overview.greatest("std")[point, place],
            )
            assert least <= std[steps].min() * (1 + 1e-6)
            assert greatest >= std[steps].max() * (1 - 1e-6)
            assert least == pytest.approx(std[steps].min(), rel=1e-3)
            assert greatest == pytest.approx(std[steps].max(), rel=1e-3)
            assert overview.last("std")[point, place] == pytest.approx(std[steps][-1], rel=1e-3)


def test_an_overview_of_one_quantity(run) -> None:
    assert len(run.overview(quantity="outputs").keys) == 70
    with pytest.raises(NoSuchSiteError, match="no 'grads'; it has outputs"):
        run.overview(quantity="grads")
    with pytest.raises(OptionError, match="`points` must be at least 1; got 0"):
        run.overview(points=0)
    with pytest.raises(NoSuchSiteError, match=f"it has {', '.join(SHOWN)}"):
        run.overview().last("median")


def test_the_catalogue(run) -> None:
    assert [site.address for site in run.sites][:3] == ["layer0", "layer1", "layer2"]
    assert run.sites[0].kind == "Linear"
    assert run.sites[0].info == {"shape": [ELEMENTS]}
    first = run.catalogue[0]
    assert (first.address, first.quantity, first.units) == ("layer0", "outputs", UNITS)
    assert first.elements == ELEMENTS
    assert run.info["command"]
    assert "writer" not in run.info


def test_names_that_do_not_exist(run, path: Path) -> None:
    with pytest.raises(NoSuchSiteError) as caught:
        run.series("layr10")
    assert str(caught.value).startswith("the run has no series of 'layr10'. Close to it: 'layer10'")
    with pytest.raises(NoSuchSiteError, match="of 'layer1' the run has outputs, but no 'grads'"):
        run.series("layer1", "grads")
    with pytest.raises(OptionError, match=r"`phase` must be one of .*; got 'test'"):
        run.series("layer1", phase="test")
    with pytest.raises(NoSuchSiteError, match="a series has no column 'median'; it has tensors,"):
        run.series("layer1")["median"]
    with pytest.raises(NoSuchRunError, match=r"Did you mean '.*mnist\.db'\?"):
        nethook.open_run(path.with_name("mnits.db"))
    with pytest.raises(FileNotFoundError):
        nethook.open_run("no/such/folder/run.db")


def test_it_says_what_it_is(run, path: Path) -> None:
    assert repr(run) == (
        f"<Run {str(path)!r}: finished, 700 steps in 700 windows; 70 sites, 70 series; "
        "loss 1 → 0.001429 (logged by the program)>"
    )
    assert re.fullmatch(
        r"<Series 'layer1' outputs, train: 700 windows, steps 0 to 699, 100% measured, "
        r"last mean \S+, std \S+>",
        repr(run.series("layer1")),
    )
    assert repr(run.scalars["loss"]) == "<Scalar 'loss': 700 points, last 0.00142857 at step 699>"
    assert repr(run.units("layer1")).endswith(" spans, 4 units>")
    assert repr(run.overview(points=1000)) == "<Overview train: 700 points of 70 series>"
    assert "8,400 elements" in repr(run.histograms("layer1"))


def test_a_run_without_steps(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        writer.add_series("x", "outputs", units=3)
        writer.flush()
        run = nethook.open_run(tmp_path / "a.db")
        assert repr(run).endswith("open, no steps yet; 0 sites, 1 series>")
        assert len(run.series("x")) == 0
        assert "no windows" in repr(run.series("x"))
        assert len(run.overview()) == 0
        assert run.histograms("x").counts.shape[0] == 0
        assert run.quantiles("x").shape == (0, 5)
        assert len(run.units("x")) == 0
        assert run.units("x").dead_share.size == 0


def test_what_was_not_measured_is_nan_and_shown(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db", capacity=100) as writer:
        for name in ("a", "b"):
            writer.add_series(name, "outputs")
        window = writer.window()
        for step in range(10):  # in rotation
            fold(window, step, [step % 2])
            window = writer.submit(window)
    series = nethook.open_run(tmp_path / "a.db").series("b")
    assert series.seen.tolist() == [0, 1] * 5
    assert series.steps.tolist() == [1] * 10
    assert np.isnan(series["mean"][::2]).all()
    assert np.isnan(series["min"][::2]).all()
    assert series["mean"][1::2] == pytest.approx([values(1, s).mean() for s in range(1, 10, 2)])
    assert "50% measured" in repr(series)


def test_numbers_that_are_not_finite_are_counted(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        writer.add_series("x", "outputs")
        window = writer.window()
        window.rows[0, INDEX["count"]] = window.rows[0, INDEX["tensors"]] = 1
        window.rows[0, INDEX["nan"]] = 1
        window.seen[0] = 1
        window.add_step(0)
        window = writer.submit(window)
        fold(window, 1, [0])
        window.rows[0, INDEX["posinf"]] = 2
        window.rows[0, INDEX["count"]] += 2
        writer.close(window)
    series = nethook.open_run(tmp_path / "a.db").series("x")
    assert series["nonfinite_share"].tolist() == [1.0, 2 / (ELEMENTS + 2)]
    assert np.isnan(series["mean"][0])
    assert np.isfinite(series["mean"][1])
    overview = nethook.open_run(tmp_path / "a.db").overview()
    assert overview.greatest("nonfinite")[0, 0] == 1


def test_phases_are_apart(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        writer.add_series("x", "outputs")
        train, evaluation = writer.window("train"), writer.window("eval")
        fold(train, 0, [0])
        fold(evaluation, 0, [0], seed=1)
        writer.submit(train)
        writer.submit(evaluation, why="pass")
    run = nethook.open_run(tmp_path / "a.db")
    assert run.series("x")["mean"] == pytest.approx([values(0, 0).mean()])
    assert run.series("x", phase="eval")["mean"] == pytest.approx([values(0, 0, 1).mean()])
    assert len(run.series("x", phase="aux")) == 0
    assert "1 window of evaluation" in repr(run)


# Ranks


def write_ranks(folder: Path, ranks: list[int], world: int, steps: int = 30) -> Path:
    for rank in ranks:
        write_run(folder / "job.db", steps, seed=rank, rank=rank, world_size=world)
    return folder / "job.db"


def test_ranks_are_merged(tmp_path: Path) -> None:
    run = nethook.open_run(write_ranks(tmp_path, [0, 1, 2], 3))
    series = run.series("layer1")
    assert len(series) == 30
    for step in (0, 17, 29):
        data = np.concatenate([values(1, step, rank) for rank in range(3)])
        assert series["count"][step] == 3 * ELEMENTS
        assert series["mean"][step] == pytest.approx(data.mean(), rel=1e-12)
        assert series["std"][step] == pytest.approx(data.std(), rel=1e-12)
        assert series["min"][step] == data.min()
    assert (series.coverage == 1).all()
    total = sum(histogram(values(1, step, rank)) for step in range(30) for rank in range(3))
    assert np.array_equal(run.histograms("layer1").counts.sum(axis=0), total)
    overview = run.overview()
    std = [values(1, 4, rank).std() for rank in range(3)]
    assert overview.least("std")[4, 1] == pytest.approx(min(std), rel=1e-3)
    assert overview.greatest("std")[4, 1] == pytest.approx(max(std), rel=1e-3)
    assert overview.last("std")[4, 1] == pytest.approx(std[0], rel=1e-3)
    assert [rank.state for rank in run.ranks] == ["finished"] * 3
    assert "3 of 3 ranks" in repr(run)


def test_a_missing_rank_is_shown_and_lowers_the_coverage(tmp_path: Path) -> None:
    run = nethook.open_run(write_ranks(tmp_path, [0, 2], 4))
    assert [rank.state for rank in run.ranks] == ["finished", "missing", "finished", "missing"]
    assert run.ranks[1].path.endswith("job.rank1.db")
    assert (run.series("layer0").coverage == 0.5).all()
    assert "2 of 4 ranks (1, 3 missing)" in repr(run)


def test_a_broken_rank_is_shown_and_the_others_are_read(tmp_path: Path) -> None:
    path = write_ranks(tmp_path, [0, 1], 2)
    (tmp_path / "job.rank1.db").write_bytes(b"nonsense" * 100)
    run = nethook.open_run(path)
    assert [rank.state for rank in run.ranks] == ["finished", "unreadable"]
    assert "not a run of nethook" in run.ranks[1].problem
    assert (run.series("layer0").coverage == 0.5).all()


def test_a_run_without_its_first_rank_is_still_a_run(tmp_path: Path) -> None:
    path = write_ranks(tmp_path, [0, 1], 2)
    path.unlink()
    run = nethook.open_run(path)
    assert [rank.state for rank in run.ranks] == ["missing", "finished"]
    assert len(nethook.open_run(tmp_path / "job.rank1.db").series("layer0")) == 30
    with pytest.raises(NoSuchRunError):
        nethook.open_run(tmp_path / "job.rank7.db")


def test_a_rank_that_died_early(tmp_path: Path) -> None:
    write_run(tmp_path / "job.db", 30, rank=0, world_size=2)
    write_run(tmp_path / "job.db", 10, rank=1, world_size=2, seed=1)
    run = nethook.open_run(tmp_path / "job.db")
    series = run.series("layer0")
    assert len(series) == 30
    assert series.coverage.tolist() == [1.0] * 10 + [0.5] * 20
    assert [rank.last_step for rank in run.ranks] == [29, 9]


def test_ranks_with_other_windows_are_brought_together(tmp_path: Path) -> None:
    write_run(tmp_path / "job.db", 12, rank=0, world_size=2)
    with RunWriter(tmp_path / "job.db", rank=1, world_size=2) as writer:
        writer.add_series("layer0", "outputs", units=UNITS)
        window = writer.window()
        for step in range(12):
            fold(window, step, [0], seed=1)
            if step in (3, 4, 11):
                window = writer.submit(window)
                writer.flush()
    series = nethook.open_run(tmp_path / "job.db").series("layer0")
    assert series.first_step.tolist() == [0, 4, 5]
    assert series.last_step.tolist() == [3, 4, 11]
    assert (series.coverage == 1).all()
    assert series["count"].tolist() == [8 * ELEMENTS, 2 * ELEMENTS, 14 * ELEMENTS]


def test_one_rank_by_itself(tmp_path: Path) -> None:
    run = nethook.open_run(write_ranks(tmp_path, [0, 1], 2)).rank(1)
    assert run.series("layer0")["mean"][0] == pytest.approx(values(0, 0, 1).mean())
    assert (run.series("layer0").coverage == 1).all()
    with pytest.raises(NoSuchRunError, match="rank 5"):
        run.rank(5)


def test_evaluation_on_one_rank_misses_nobody(tmp_path: Path) -> None:
    path = write_ranks(tmp_path, [0, 1], 2)
    with RunWriter(path, resume=True, world_size=2) as writer:
        window = writer.window("eval")
        fold(window, 0, [0])
        writer.submit(window)
    assert nethook.open_run(path).series("layer0", phase="eval").coverage.tolist() == [1.0]


def test_events_say_which_rank(tmp_path: Path) -> None:
    for rank in (0, 1):
        with RunWriter(tmp_path / "job.db", rank=rank, world_size=2) as writer:
            writer.event("hello", 5 - rank)
            writer.log("loss", rank, 0)
    run = nethook.open_run(tmp_path / "job.db")
    assert [(event.step, event.rank) for event in run.events] == [(4, 1), (5, 0)]
    assert run.scalars["loss"].value.tolist() == [0.0]


def test_the_rows_of_the_tests_are_right() -> None:
    """The oracle of these tests agrees with itself: two arrays merged are one array."""
    from nethook.stats.fields import merge_rows

    data = values(0, 0), values(1, 1)
    assert merge_rows(row(data[0]), row(data[1])) == pytest.approx(
        np.where(np.arange(len(row(data[0]))) == 0, 2, row(np.concatenate(data))), abs=1e-12
    )


def test_units_of_a_span_that_was_not_measured_are_unknown(tmp_path):
    """What the budget left out is not silent."""
    write_run(tmp_path / "a.db", 4, 2, measured=[0])
    run = nethook.open_run(tmp_path / "a.db")
    assert run.units("layer0").measured.all()
    assert not run.units("layer1").measured.any()
    assert np.isnan(run.units("layer1").dead_share).all()
