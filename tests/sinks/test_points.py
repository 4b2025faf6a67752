from __future__ import annotations

import math

import pytest

from nethook.sinks.points import Points


def test_what_came_since_the_last_point_is_its_mean():
    points = Points(every=1e9)
    points.add({"a": 1.0}, step=0)
    assert points.take() == [(0, {"a": 1.0})]  # the first is not held up
    points.add({"a": 2.0}, step=1)
    points.add({"a": 5.0, "b": 1.0}, step=3, weight=2)
    assert points.take() == []
    assert points.take(now=True) == [(3, {"a": pytest.approx(4.0), "b": 1.0})]
    assert points.take(now=True) == []


def test_scalars_wait_for_the_window_of_their_step():
    points = Points(every=0)
    points.add_scalar("grad_norm", [(0, 0.0, 1.0), (1, 0.0, 3.0)], every=False)
    points.add({}, step=0)
    assert points.take() == [(0, {"scalars/grad_norm": 1.0})]
    points.add({}, step=1)
    assert points.take() == [(1, {"scalars/grad_norm": 3.0})]


def test_points_that_come_again_count_once():
    points = Points(every=1e-9)
    for _ in range(2):
        points.add_scalar("grad_norm", [(0, 0.0, 1.0)], every=False)
    points.add_scalar("grad_norm", [(0, 0.0, 1.0), (1, 0.0, 2.0)], every=False)
    points.add({}, step=1)
    assert points.take() == [(1, {"scalars/grad_norm": 1.5})]


def test_a_learning_rate_goes_with_every_point():
    points = Points(every=0)
    points.add_scalar("lr:0.0", [(0, 0.0, 0.1)], every=False)
    for step in range(2):
        points.add({"a": 1.0}, step=step)
        assert points.take() == [(step, {"scalars/lr:0.0": 0.1, "a": 1.0})]


def test_a_loss_is_shown_as_everywhere():
    points = Points(every=0)
    # value, samples, batches, divided, sum, batch_sum: two micro-batches of 3 and 1 samples
    points.add_scalar("loss:train.py:3", [(0, 0.0, 9.0, 4.0, 2.0, 0.0, 10.0, 6.0)], every=False)
    points.add_scalar(
        "eval_loss:train.py:9", [(0, 0.0, 9.0, math.nan, 2.0, 0.0, math.nan, 6.0)], every=False
    )
    assert points.take(now=True) == [(0, {"loss/train.py:3": 2.5, "eval_loss/train.py:9": 3.0})]


def test_what_the_script_logs_is_sent_on_request():
    points = Points(every=0)
    points.add_scalar("val_accuracy", [(0, 0.0, 0.5)], every=False)
    points.add_scalar("batch_fingerprint", [(0, 0.0, 123.0)], every=True)
    assert points.take(now=True) == []
    points.add_scalar("val_accuracy", [(1, 0.0, 0.7)], every=True)
    assert points.take(now=True) == [(1, {"scalars/val_accuracy": 0.7})]


def test_with_every_window_a_late_scalar_stays_at_its_own_step():
    points = Points(every=0)
    points.add({"a": 1.0}, step=0)
    points.add_scalar("grad_norm", [(0, 0.0, 1.0), (1, 0.0, 2.0)], every=False)
    points.add({"a": 3.0}, step=1)
    assert points.take() == [
        (0, {"scalars/grad_norm": 1.0}),
        (1, {"a": 2.0, "scalars/grad_norm": 2.0}),
    ]
