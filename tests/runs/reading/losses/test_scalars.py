"""What was logged, by one rank and by several."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.runs.names import GRAD_NORM, loss_name
from nethook.runs.reading.losses.scalars import merged_scalars, rate_name


class Logged:
    """What a rank has logged: name -> [(step, time, value), …]."""

    def __init__(self, **points):
        self.names = list(points)
        self.points = [np.array(entries, dtype=np.float64) for entries in points.values()]

    def scalar_names(self):
        return {name: (index, 0) for index, name in enumerate(self.names)}

    def scalar(self, name, keep):
        assert keep == 0
        return self.points[name]


LOSS = loss_name("a")


def test_one_rank_is_as_it_is():
    scalars = merged_scalars([Logged(x=[(0, 1.5, 3.0), (4, 2.5, np.nan)])], sharded=False)
    (scalar,) = scalars.values()
    assert scalar.name == "x"
    assert scalar.step.dtype == np.int64
    assert scalar.step.tolist() == [0, 4]
    assert scalar.time.tolist() == [1.5, 2.5]
    np.testing.assert_array_equal(scalar.value, [3.0, np.nan])


def test_of_losses_the_mean_over_the_ranks_that_have_a_step():
    ranks = [Logged(**{LOSS: [(0, 5, 1.0), (1, 6, 2.0)]}), Logged(**{LOSS: [(1, 4, 6.0)]})]
    scalar = merged_scalars(ranks, sharded=False)[LOSS]
    assert scalar.step.tolist() == [0, 1]
    assert scalar.value.tolist() == [1.0, 4.0]
    assert scalar.time.tolist() == [5, 4]


def test_of_roots_in_a_sharded_run_the_root_of_the_mean_square():
    ranks = [Logged(grad_norm=[(0, 5, 3.0), (1, 5, 1.0)]), Logged(grad_norm=[(0, 5, 4.0)])]
    assert GRAD_NORM == "grad_norm"
    scalar = merged_scalars(ranks, sharded=True)["grad_norm"]
    # A step that one rank lacks is left out: half a norm would be none.
    assert scalar.step.tolist() == [0]
    np.testing.assert_allclose(scalar.value, [np.sqrt((9 + 16) / 2)])


def test_all_others_are_those_of_the_first_rank_that_has_them():
    ranks = [Logged(x=[(0, 5, 3.0)]), Logged(x=[(0, 5, 9.0)], y=[(2, 5, 1.0)])]
    scalars = merged_scalars(ranks, sharded=True)
    assert list(scalars) == ["x", "y"]
    assert scalars["x"].value.tolist() == [3.0]
    assert merged_scalars([Logged(grad_norm=[(0, 5, 3.0)])] * 2, sharded=False)[
        GRAD_NORM
    ].value.tolist() == [3.0]


@pytest.mark.parametrize(
    ("rates", "names"),
    [
        (["lr:0.0"], ["learning rate"]),
        (["lr:0.0", "lr:0.1"], ["learning rate, group 0", "learning rate, group 1"]),
        (["lr:0.0", "lr:1.0"], ["learning rate, AdamW", "learning rate, optimizer 1"]),
        (
            ["lr:0.0", "lr:1.0", "lr:1.1"],
            [
                "learning rate, AdamW",
                "learning rate, optimizer 1 group 0",
                "learning rate, optimizer 1 group 1",
            ],
        ),
    ],
)
def test_a_learning_rate_is_called_no_more_than_tells_it_apart(
    rates: list[str], names: list[str]
) -> None:
    assert [rate_name(rate, [*rates, "loss"], {"0": "AdamW"}) for rate in rates] == names
