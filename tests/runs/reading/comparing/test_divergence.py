"""Where two runs part."""

from __future__ import annotations

import numpy as np
import pytest

import nethook
from nethook.figures.difference import Difference
from nethook.runs.reading.comparing.divergence import LIMITS, find_parting
from nethook.runs.writing.writer import RunWriter
from tests.figures.made import write_training
from tests.figures.shared import changed, training
from tests.runs.made import row


def open_both(one, two):
    return nethook.open_run(one), nethook.open_run(two)


def test_a_run_is_equal_to_itself():
    parting = find_parting(*open_both(training(), training()))
    assert parting.same
    assert (parting.compared, parting.windows) == (42, 120)
    assert np.isnan(parting.difference).all()
    assert parting.facts == ()


def test_the_first_step_and_the_first_layer_are_found():
    parting = find_parting(*open_both(training(), changed()))
    first = parting.points[0]
    assert (first.step, first.address, first.quantity, first.words) == (
        61,
        "conv1",
        "outputs",
        "a digit",
    )
    assert np.isnan(parting.difference[:, :61]).all()
    assert (parting.difference[:, 61] > 0).all()
    steps = [point.step for point in parting.points]
    assert steps == sorted(steps)
    assert ("learning rate at step 0", "0.1", "0.2") in parting.facts


def write(path, values, *, sites=("a", "b"), quantity="outputs", order=None):
    """A run of given numbers: values[site][step]."""
    with RunWriter(path, flush_every=0.01, capacity=1000) as writer:
        for at, site in enumerate(sites):
            info = {"first_call": order[at]} if order else {}
            writer.add_site(site, "Linear", info)
            writer.add_series(site, quantity)
        window = writer.window()
        for step in range(len(values[0])):
            for at in range(len(sites)):
                window.rows[at] = row(np.array([values[at][step], values[at][step] + 1.0]))
                window.seen[at] = 1
            window.add_step(step)
            window = writer.submit(window)
    return path


def test_limits_are_passed_one_after_the_other(tmp_path):
    base = np.ones(6)
    apart = base * [1, 1 + 1e-9, 1.05, 1.6, 2, 9]
    parting = find_parting(*open_both(
        write(tmp_path / "a.db", [base, base]), write(tmp_path / "b.db", [base, apart])
    ))  # fmt: skip
    assert [(point.words, point.step) for point in parting.points] == [
        ("a digit", 1), ("1 %", 2), ("10 %", 3), ("a factor of 2", 5),
    ]  # fmt: skip
    assert all(point.address == "b" for point in parting.points)
    assert len(LIMITS) == 4


@pytest.mark.parametrize(
    ("quantity", "order", "first"),
    [("outputs", [0, 1], "a"), ("outputs", [1, 0], "b"), ("grads", [0, 1], "b")],
)
def test_within_a_step_what_runs_earlier_comes_first(tmp_path, quantity, order, first):
    one, two = np.zeros((2, 2)), np.zeros((2, 2))
    two[:, 1] = 5.0
    parting = find_parting(*open_both(
        write(tmp_path / "a.db", one, quantity=quantity, order=order),
        write(tmp_path / "b.db", two, quantity=quantity, order=order),
    ))  # fmt: skip
    assert (parting.points[0].address, parting.points[0].step) == (first, 1)


def test_a_nan_in_one_alone_is_a_difference(tmp_path):
    one = write(tmp_path / "a.db", [[1.0, 1.0]], sites=["a"])
    with RunWriter(tmp_path / "b.db", flush_every=0.01) as writer:
        writer.add_site("a", "Linear")
        writer.add_series("a", "outputs")
        window = writer.window()
        window.rows[0] = row(np.array([1.0, 2.0]))
        window.seen[0] = 1
        window.add_step(0)
        window = writer.submit(window)
        window.rows[0][:] = row(np.array([1.0, 2.0]))
        from nethook.stats.fields import INDEX

        window.rows[0][INDEX["nan"]] = 2  # both elements are NaN now
        window.seen[0] = 1
        window.add_step(1)
        writer.submit(window)
    (*_, last) = find_parting(*open_both(one, tmp_path / "b.db")).points
    assert (last.step, last.words) == (1, "a factor of 2")
    assert np.isnan(last.second)


def test_runs_that_have_nothing_in_common(tmp_path):
    one = write(tmp_path / "a.db", [[1.0]], sites=["a"])
    two = write(tmp_path / "b.db", [[1.0]], sites=["z"])
    parting = find_parting(*open_both(one, two))
    assert (parting.only_first, parting.only_second) == (("a",), ("z",))
    assert "nothing in common" in Difference(one, two).headline()


def test_a_shorter_run_is_compared_as_far_as_it_goes(tmp_path):
    short = write_training(tmp_path / "short.db", 20, findings=[])
    parting = find_parting(*open_both(training(), short))
    assert parting.same
    assert parting.windows == 20


def test_a_difference_in_words():
    found = Difference(training(), changed())
    text = found.text()
    assert text.startswith("They diverge at step 61, first in outputs of conv1 (mean ")
    assert "learning rate at step 0" in text
    assert "training: loss 2.36" in text
    assert " in 120 steps (mean over batches)" in text
    places = [(point.step, point.address, point.quantity) for point in found.places()]
    assert len(set(places)) == len(places)
    assert found.places()[-1] == found.parting.points[-1]
    assert all(len(line) <= 100 for line in text.splitlines())
    assert Difference(training(), training()).headline() == (
        "They are equal in all that both recorded: 42 series in 120 windows."
    )
