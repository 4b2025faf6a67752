"""Figures of a run, and of two."""

from __future__ import annotations

import numpy as np
import pytest
from plotly.graph_objects import Figure

import nethook
from nethook import figures
from nethook.errors import NoSuchSiteError
from tests.figures.shared import changed, training


def test_every_public_name_is_there_and_explained():
    assert sorted(figures.__all__) == figures.__all__
    for name in figures.__all__:
        assert getattr(figures, name).__doc__


@pytest.mark.parametrize(
    "make",
    [
        lambda run, theme: figures.overview(run, theme=theme),
        lambda run, theme: figures.heatmap(run, "silent", theme=theme),
        lambda run, theme: figures.depth(run, theme=theme),
        lambda run, theme: figures.depth(run, "spread", step=[0, 50], theme=theme),
        lambda run, theme: figures.histogram(run, "fc1", theme=theme),
        lambda run, theme: figures.bands(run, "conv1.weight", "updates", theme=theme),
        lambda run, theme: figures.units(run, "relu1", theme=theme),
        lambda run, theme: figures.tree(run, theme=theme),
        lambda run, theme: figures.finding(run, 1, theme=theme),
        lambda run, theme: figures.compare(run, changed(), theme=theme),
        lambda run, theme: figures.compare(run, changed(), "spread", theme=theme),
        lambda run, theme: figures.parting(run, changed(), theme=theme),
    ],
)
def test_figures_of_a_run(make):
    made = make(training(), "dark")
    assert isinstance(made, Figure)
    assert made.data
    assert made.layout.template.layout.plot_bgcolor == "#171b21"


def test_a_run_is_as_good_as_its_path():
    run = nethook.open_run(training())
    assert figures.overview(run) == figures.overview(str(training()))


def test_a_profile_beside_another_run():
    made = figures.depth(training(), "spread", against=changed())
    assert [trace.name for trace in made.data] == ["training, step 119", "changed, step 119"]
    assert not np.array_equal(made.data[0].x, made.data[1].x)
    grid = figures.depth(training(), "spread", step=119)
    np.testing.assert_array_equal(made.data[0].x, grid.data[0].x)


def test_compared_layers_are_equal_until_they_part():
    made = figures.compare(training(), changed(), "spread")
    z = np.array(made.data[0].z)
    np.testing.assert_array_equal(z[:, :61], 0)
    assert (z[0, 61:] != 0).all()
    assert "61" in str([shape.x0 for shape in made.layout.shapes])


def test_what_cannot_be_shown_is_said():
    run = training()
    with pytest.raises(
        NoSuchSiteError, match=r"must be the number of a finding; got 7\. The run has 3 findings"
    ):
        figures.finding(run, 7)
    with pytest.raises(NoSuchSiteError, match="no numbers that show 'unused-module'"):
        figures.finding(run, {"code": "unused-module"})
    with pytest.raises(NoSuchSiteError, match="no layer that differs"):
        figures.parting(run, run)
    with pytest.raises(NoSuchSiteError, match="no series of 'fc9'"):
        figures.histogram(run, "fc9")


# Tensors


def test_only_what_is_for_users_is_listed() -> None:
    import nethook.figures

    assert dir(nethook.figures) == sorted(nethook.figures.__all__)
