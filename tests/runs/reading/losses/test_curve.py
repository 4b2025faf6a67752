"""A loss as it went, against plain lists of the same numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nethook.errors import NoSuchSiteError
from nethook.runs import names
from nethook.runs.format.points import BUCKETED, as_losses, buckets_of
from nethook.runs.format.schema import CHUNK
from nethook.runs.reading.losses.curve import curve_of, curve_of_series, merged_buckets
from nethook.runs.reading.results import buckets_from
from nethook.runs.reading.run import open_run
from nethook.runs.writing.writer import RunWriter
from tests.runs.made import loss_point as point
from tests.runs.made import row

LOSS = names.loss_name("train.py:3")


def written(path, points, keep=names.KEPT_STEPS, name=LOSS, pieces=(100,)):
    """A run with these points, which come to the writer in pieces of these sizes, in turns."""
    with RunWriter(path, flush_every=0.01) as writer:
        at = turn = 0
        while at < len(points):
            size = pieces[turn % len(pieces)]
            writer.log_points(name, points[at : at + size], keep=keep)
            at, turn = at + size, turn + 1
    return open_run(path)


# -- every value is kept, and of what is older min, max and mean ----------------------------------

VALUES = st.one_of(
    st.floats(-1e6, 1e6), st.floats(0, 10), st.sampled_from([math.nan, math.inf, -math.inf])
)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    some=st.lists(VALUES, min_size=5, max_size=60),
    count=st.integers(0, 9 * CHUNK),
    kept=st.integers(1, 3 * CHUNK),
    pieces=st.lists(st.integers(1, 1500), min_size=1, max_size=4),
    seed=st.integers(0, 99),
)
def test_a_stream_of_losses_is_as_the_list_of_it(tmp_path_factory, some, count, kept, pieces, seed):
    chance = np.random.default_rng(seed)
    values = [some[index] for index in chance.integers(0, len(some), count)]
    sizes = chance.integers(1, 40, count).tolist()
    points = [
        point(3 * at, value, size)
        for at, (value, size) in enumerate(zip(values, sizes, strict=True))
    ]
    path = tmp_path_factory.mktemp("stream") / "run.db"
    with written(path, points, kept, pieces=pieces) as run:
        if not count:
            assert run.loss_curves() == {}
            return
        curve = run.loss("train.py:3")
    older = 0 if curve.older is None else int(curve.older.points.sum())
    # Each point is kept, or in one bucket: none twice, none lost.
    assert older + len(curve) == count
    assert len(curve) >= min(count, kept)
    assert curve.step.tolist() == [3 * at for at in range(older, count)]
    np.testing.assert_array_equal(curve.value, values[older:])
    assert curve.samples.tolist() == sizes[older:]
    if curve.older is None:
        return
    buckets, at = curve.older, 0
    for index in range(len(buckets)):
        size = int(buckets.points[index])
        assert 0 < size <= BUCKETED
        mine = values[at : at + size]
        finite = [value for value in mine if math.isfinite(value)]
        assert (buckets.first_step[index], buckets.last_step[index]) == (
            3 * at,
            3 * (at + size - 1),
        )
        np.testing.assert_array_equal(buckets.first[index], mine[0])
        if finite:
            assert (buckets.min[index], buckets.max[index]) == (min(finite), max(finite))
            mean = math.fsum(finite) / len(finite)
            assert buckets.mean[index] == pytest.approx(mean, rel=1e-9, abs=1e-6)
        else:
            assert np.isnan([buckets.min[index], buckets.max[index], buckets.mean[index]]).all()
        assert buckets.samples[index] == sum(sizes[at : at + size])
        assert buckets.batches[index] == size
        at += size
    whole = math.fsum(v * n for v, n in zip(values, sizes, strict=True) if math.isfinite(v))
    if all(map(math.isfinite, values)):
        scale = max(1.0, max(map(abs, values)))
        assert curve.mean == pytest.approx(whole / sum(sizes), rel=1e-9, abs=1e-9 * scale)
        assert curve.batch_mean == pytest.approx(
            math.fsum(values) / count, rel=1e-9, abs=1e-9 * scale
        )


def test_gradient_norms_are_kept_in_the_same_way(tmp_path):
    norms = [float(at % 97) + 0.25 for at in range(5 * CHUNK)]
    points = [(at, 1e9, norm) for at, norm in enumerate(norms)]
    with written(tmp_path / "run.db", points, 2 * CHUNK, names.GRAD_NORM) as run:
        norm = run.scalars[names.GRAD_NORM]
        assert names.OLDER + names.GRAD_NORM not in run.scalars
    older = int(norm.older.points.sum())
    assert norm.value.tolist() == norms[older:]
    assert norm.older.max.tolist() == [
        max(norms[at : at + BUCKETED]) for at in range(0, older, BUCKETED)
    ]


def test_at_least_the_last_100_000_steps_are_kept_one_by_one():
    assert names.KEPT_STEPS >= 100_000


def test_a_run_that_goes_on_adds_to_its_last_chunk_and_keeps_what_it_should(tmp_path):
    path = tmp_path / "run.db"
    steps = 0
    for session in range(5):
        with RunWriter(path, resume=session > 0, step=steps if session else None) as writer:
            points = [point(at, float(at), 2) for at in range(steps, steps + 300)]
            writer.log_points(LOSS, points, keep=CHUNK)
        steps += 300
    curve = open_run(path).loss()
    assert curve.step[-CHUNK:].tolist() == list(range(1500 - CHUNK, 1500))
    assert int(curve.older.points.sum()) + len(curve) == 1500


# -- means -----------------------------------------------------------------------------------------


def test_the_means_of_some_steps_are_those_of_their_batches(tmp_path):
    random = np.random.default_rng(0)
    values, sizes = random.random(50), random.integers(1, 64, 50)
    points = [point(at, values[at], int(sizes[at])) for at in range(50)]
    curve = written(tmp_path / "run.db", points).loss()
    for first, last in ((0, 49), (7, 7), (20, 33)):
        part = slice(first, last + 1)
        some = curve.between(first, last)
        assert some.mean == pytest.approx(np.average(values[part], weights=sizes[part]), rel=1e-12)
        assert some.batch_mean == pytest.approx(values[part].mean(), rel=1e-12)
        assert some.counted == "mean over samples"
    assert math.isnan(curve.between(60, 70).mean)


def test_a_sum_is_shown_by_its_samples(tmp_path):
    points = [point(0, 120.0, 60, total=120.0), point(1, 10.0, 5, total=10.0)]
    curve = written(tmp_path / "run.db", points).loss()
    assert curve.value.tolist() == [120.0, 10.0]
    assert curve.shown.tolist() == [2.0, 2.0]
    assert (curve.mean, curve.batch_mean) == (2.0, 65.0)


def test_where_samples_are_not_known_the_mean_is_over_batches_and_says_so(tmp_path):
    points = [(at, 1e9, value) for at, value in enumerate([1.0, 2.0, 6.0])]
    curve = written(tmp_path / "run.db", points).loss()
    assert (curve.mean, curve.batch_mean) == (3.0, 3.0)
    assert (curve.counted, curve.shown_as) == ("mean over batches", "mean over batches")
    assert curve.shown.tolist() == [1.0, 2.0, 6.0]


def test_points_of_an_older_version_go_on_with_those_of_this_one(tmp_path):
    path = tmp_path / "run.db"
    with RunWriter(path) as writer:
        writer.log_points(LOSS, [(0, 1e9, 5.0), (1, 1e9, 4.0)], keep=4096)
    with RunWriter(path, resume=True, step=2) as writer:
        writer.log_points(LOSS, [point(2, 3.0, 8)], keep=names.KEPT_STEPS)
    curve = open_run(path).loss()
    assert curve.shown.tolist() == [5.0, 4.0, 3.0]
    assert curve.counted == "mean over batches"
    assert curve.shown_as == "mean over samples"


def test_ranks_are_one_curve_with_the_samples_of_all():
    ranks = [
        np.array([point(0, 1.0, 8), point(1, 3.0, 8)]),
        np.array([point(1, 6.0, 4)]),
    ]
    curve = curve_of(LOSS, "a", "train", ranks, None)
    assert curve.step.tolist() == [0, 1]
    assert curve.value.tolist() == [1.0, 4.5]
    assert curve.samples.tolist() == [8, 12]
    assert curve.shown.tolist() == [1.0, (3 * 8 + 6 * 4) / 12]


def test_buckets_of_ranks_that_have_the_same_steps_are_merged():
    tables = [np.array([point(at, float(at * by), 2) for at in range(70)]) for by in (1, 3)]
    one, two = (buckets_from(buckets_of(table)) for table in tables)
    both = merged_buckets([one, two])
    assert both.max.tolist() == [63 * 3, 69 * 3]
    assert both.min.tolist() == [0, 64]
    assert both.samples.tolist() == [256, 24]
    other = buckets_from(buckets_of(tables[1][:10]))
    assert merged_buckets([one, other]) is one
    assert merged_buckets([]) is None


# -- a run -----------------------------------------------------------------------------------------


def test_evaluations_of_an_older_file_are_their_windows(tmp_path):
    address = names.loss_address("eval.py:9")
    with RunWriter(tmp_path / "run.db") as writer:
        at = writer.add_series(address, names.LOSS)
        for step, losses in enumerate([[1.0, 3.0], [2.0, 5.0, 5.0]]):
            window = writer.window("eval")
            window.rows[at] = row(np.array(losses))
            window.seen[at] = 1
            window.add_step(step)
            writer.submit(window)
    with open_run(tmp_path / "run.db") as run:
        curve = run.loss(phase="eval")
        assert curve.shown.tolist() == [2.0, 4.0]
        assert curve.batches.tolist() == [2, 3]
        assert curve.shown_as == "mean over batches"
        assert curve.batch_mean == pytest.approx(16 / 5)
        assert run.loss_curves("train") == {}
        series = run.series(address, names.LOSS, "eval")
        assert len(curve_of_series("x", "x", "eval", series)) == 2


def test_a_loss_that_is_not_there_is_an_error_that_names_those_that_are(tmp_path):
    run = written(tmp_path / "run.db", [point(0, 1.0, 2)])
    with pytest.raises(NoSuchSiteError, match=r"has no loss 'b'; it has 'train.py:3'\."):
        run.loss("b")
    with pytest.raises(NoSuchSiteError, match=r"'eval' the run has no loss None; it has none\."):
        run.loss(phase="eval")


def test_it_says_what_it_is(tmp_path):
    curve = written(tmp_path / "run.db", [point(0, 2.5, 2), point(1, 0.5, 2)]).loss()
    assert repr(curve) == (
        "<LossCurve 'train.py:3', train: 2 points, 2.5 → 0.5 at step 1 (mean over samples)>"
    )
    assert list(curve.columns()) == [
        "step", "time", "value", "shown", "samples", "batches", "divided", "sum", "batch_sum",
    ]  # fmt: skip


def test_a_chart_has_buckets_and_points(tmp_path):
    points = [point(at, float(at), 4) for at in range(4 * CHUNK)]
    curve = written(tmp_path / "run.db", points, CHUNK).loss()
    step, mean, low, high = curve.course()
    assert len(step) == len(curve) + len(curve.older)
    assert (np.diff(step) > 0).all()
    assert (mean[0], low[0], high[0]) == (31.5, 0.0, 63.0)
    assert (curve.first, curve.last) == (0.0, 4 * CHUNK - 1)


def test_plain_points_are_one_batch_of_unknown_size():
    wide = as_losses(np.array([[5.0, 1e9, 2.0]]))
    assert wide[0, [0, 2, 4, 5, 7]].tolist() == [5.0, 2.0, 1.0, 0.0, 2.0]
    assert np.isnan(wide[0, [3, 6]]).all()
