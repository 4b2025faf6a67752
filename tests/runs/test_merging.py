"""All ranks in one file: the same numbers as the reader merges from many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nethook
from nethook.errors import OptionError, RunExistsError
from nethook.runs.merging import merge_run
from nethook.runs.reading.run import open_run
from nethook.runs.writing.writer import RunWriter
from nethook.stats.fields import INDEX, ZERO_BIN

LAYERS, STEPS, UNITS = ("fc1", "fc2"), 150, 5


def made(path: Path, ranks: int = 3) -> Path:
    random = np.random.default_rng(0)
    for rank in range(ranks):
        with RunWriter(path, rank=rank, world_size=ranks) as writer:
            for layer in LAYERS:
                writer.add_site(layer, "Linear", {"line": "net.py:1"})
                writer.add_series(layer, "outputs", units=UNITS)
            window = writer.window()
            for step in range(STEPS - 10 * rank):  # the others end earlier
                rows, column = window.rows, INDEX
                for row in range(len(LAYERS)):
                    if (step + row + rank) % 3 == 0:
                        continue  # not every step measures every layer
                    rows[row, column["tensors"]] = 1
                    rows[row, column["count"]] = rows[row, column["binned"]] = 8
                    rows[row, column["mean"]] = random.normal()
                    rows[row, column["m2"]] = random.random()
                    rows[row, column["min"]], rows[row, column["max"]] = -1 - step, 1 + rank
                    window.histograms[row, ZERO_BIN + 1 + step % 7] += 8
                    window.bits_of(row)[(step + rank) % UNITS] = 1
                    window.seen[row] = 1
                window.first_step = window.last_step = step
                window.steps = 1
                while not writer.hand_over(window):
                    writer.flush(10)
                window = writer.window()
                point = (
                    step,
                    1e9 + step,
                    1 / (1 + step + rank),
                    8.0,
                    1.0,
                    0.0,
                    8 / (1 + step),
                    0.5,
                )
                writer.log_points("loss:train.py:9", [point])
                writer.log("params_fingerprint", float(step), step)
            writer.log("accuracy", 0.5, 3)
            writer.event("order", 2, f"of rank {rank}")
    return path


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("merge")
    path = made(folder / "run.db")
    seen = []
    merged = merge_run(path, folder / "all.db", lambda done, total: seen.append((done, total)))
    assert seen[-1] == (STEPS, STEPS)
    return path, merged


def test_series_have_the_same_numbers_and_coverage(both: tuple[Path, Path]) -> None:
    with open_run(both[0]) as many, open_run(both[1]) as one:
        assert one.world_size == 1
        for layer in LAYERS:
            expected, got = many.series(layer), one.series(layer)
            for name in ("first_step", "last_step", "steps", "seen"):
                assert np.array_equal(getattr(got, name), getattr(expected, name)), name
            # Means are packed with 12 digits, once more than before; counts stay exact.
            np.testing.assert_allclose(got.rows, expected.rows, rtol=1e-11)
            whole = [INDEX[name] for name in ("tensors", "count", "binned", "zeros")]
            assert np.array_equal(got.rows[:, whole], expected.rows[:, whole])
            assert np.array_equal(got.coverage, expected.coverage)


def test_histograms_and_units_add_up(both: tuple[Path, Path]) -> None:
    with open_run(both[0]) as many, open_run(both[1]) as one:
        for layer in LAYERS:
            expected, got = many.histograms(layer).counts, one.histograms(layer).counts
            assert np.array_equal(got.sum(0), expected.sum(0))
            assert np.array_equal(one.units(layer).active.any(0), many.units(layer).active.any(0))


def test_losses_and_what_each_rank_said(both: tuple[Path, Path]) -> None:
    with open_run(both[0]) as many, open_run(both[1]) as one:
        expected, got = many.loss("train.py:9"), one.loss("train.py:9")
        np.testing.assert_allclose(got.shown, expected.shown, rtol=1e-12)
        np.testing.assert_allclose(got.batch_mean, expected.batch_mean, rtol=1e-12)
        assert one.scalars["accuracy"].value.tolist() == [0.5]
        second = one.scalars["rank2/loss:train.py:9"]
        assert np.array_equal(second.value, many.rank(2).scalars["loss:train.py:9"].value)
        assert len(one.scalars["rank1/params_fingerprint"]) == STEPS - 10
        assert [event.message for event in one.events] == [f"of rank {rank}" for rank in range(3)]
        assert one.info["merged"] == {"ranks": 3, "world_size": 3}
        assert [site.info["line"] for site in one.sites] == ["net.py:1"] * 2


def test_it_can_be_diagnosed(both: tuple[Path, Path]) -> None:
    assert isinstance(nethook.diagnose(both[1]), list)


def test_a_disk_that_takes_nothing_ends_it(
    tmp_path: Path, both: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunWriter, "hand_over", lambda *_: False)
    monkeypatch.setattr(RunWriter, "problem", "the disk is full")
    with pytest.raises(OptionError, match=r"must be a file that can be written.*the disk is full"):
        merge_run(both[0], tmp_path / "x.db")


def test_what_is_refused(tmp_path: Path, both: tuple[Path, Path]) -> None:
    with pytest.raises(OptionError, match="must have several ranks"):
        merge_run(both[1], tmp_path / "x.db")
    with pytest.raises(RunExistsError):
        merge_run(both[0], both[1])
    with RunWriter(tmp_path / "a.db", world_size=2):
        RunWriter(tmp_path / "a.db", rank=1, world_size=2).close()
        with pytest.raises(OptionError, match="is being written"):
            merge_run(tmp_path / "a.db", tmp_path / "x.db")
