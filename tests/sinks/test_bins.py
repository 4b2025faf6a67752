from __future__ import annotations

import numpy as np
import pytest

from nethook.sinks.bins import bin_edges, fold, quantiles
from nethook.stats.fields import BINS, bin_values


def test_every_bin_lies_between_its_edges():
    edges = bin_edges()
    assert len(edges) == BINS + 1
    assert (np.diff(edges) >= 0).all()
    values = bin_values()
    assert (edges[:-1] <= values).all()
    assert (values <= edges[1:]).all()


@pytest.mark.parametrize("most", [1, 7, 100, 512, 645])
def test_folding_loses_no_count_and_invents_no_edge(most):
    counts = np.random.default_rng(0).poisson(3.0, BINS)
    edges = bin_edges()
    folded, ends = fold(counts, edges, most)
    assert len(folded) <= most
    assert len(ends) == len(folded) + 1
    assert folded.sum() == counts.sum()
    assert set(ends) <= set(edges)
    # As many elements below each edge that is left as there were.
    below = np.concatenate(([0], np.cumsum(counts)))
    places = [np.flatnonzero(edges == end)[-1 if end == ends[0] else 0] for end in ends]
    for place, total in zip(places[1:], np.cumsum(folded), strict=True):
        assert total in (below[place], below[min(place + 1, BINS)])  # the edge 0 stands twice


def test_empty_ends_are_cut_off():
    counts = np.zeros(BINS, dtype=np.int64)
    counts[400:410] = 1
    folded, ends = fold(counts, bin_edges(), 512)
    assert folded.tolist() == [1] * 10
    assert ends[0] == bin_edges()[400]
    assert fold(counts * 0, bin_edges(), 512)[0].sum() == 0


def test_quantiles_are_those_of_numpy_within_a_bin():
    values = np.random.default_rng(0).standard_normal(20_000)
    edges = bin_edges()
    # The edge at zero stands twice, which numpy's histogram does not mind.
    counts, _ = np.histogram(values, edges)
    for share, found in zip(
        (0.05, 0.5, 0.95), quantiles(counts, edges, [0.05, 0.5, 0.95]), strict=True
    ):
        assert found == pytest.approx(np.quantile(values, share), rel=0.2, abs=0.02)
    assert np.isnan(quantiles(counts * 0, edges, [0.5])).all()
