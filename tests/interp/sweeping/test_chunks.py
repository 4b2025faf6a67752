"""Which cells share a run, and how many."""

from types import SimpleNamespace

import pytest
import torch

from nethook.addresses.inputs import Inputs
from nethook.interp.sweeping.chunks import chosen_rows, chunked
from nethook.interp.sweeping.recording import Called, Recording


def places(*counts):
    return [SimpleNamespace(at=(n, m)) for n, count in enumerate(counts) for m in range(count)]


def shape(chunks):
    return [[place.at[0] for place in chunk] for chunk in chunks]


def test_cells_of_a_site_stay_together():
    assert shape(chunked(places(3, 3), 3)) == [[0] * 3, [1] * 3]
    assert shape(chunked(places(4, 1), 3)) == [[0] * 2, [0] * 2, [1]]
    assert shape(chunked(places(1, 1, 1, 1, 1), 2)) == [[0, 1], [2, 3], [4]]
    assert shape(chunked(places(1, 5, 1), 4)) == [[0], [1] * 3, [1] * 2, [2]]
    assert shape(chunked(places(2, 2), 1)) == [[0], [0], [1], [1]]


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 64])
def test_every_cell_is_in_one_chunk_of_at_most_that_size(rows):
    given = places(5, 1, 1, 12, 3, 1)
    chunks = chunked(given, rows)
    assert [place for chunk in chunks for place in chunk] == given
    assert max(map(len, chunks)) <= rows


def base(one, two, *, mixed="", megabytes=0):
    """A base run that took so many seconds; of two copies, from what it took between two others."""
    called = Called("a", None, outputs=[torch.empty(megabytes, 250_000)])
    return SimpleNamespace(
        mixed=mixed, seconds=(one, 2 * two - one), inputs=Inputs((torch.ones(1),)),
        recording=Recording({"a": called}),
    )  # fmt: skip


def test_rows_are_chosen_by_what_runs_cost():
    assert chosen_rows(base(1.0, 1.5), 100, 100) == 8  # 0.5 + n * 0.5: overhead is an eighth
    assert chosen_rows(base(1.0, 1.5), 100, 14) == 14  # one run for a site, not two
    assert chosen_rows(base(1.0, 2.5), 100, 100) == 1  # no overhead to share
    assert chosen_rows(base(1.0, 0.9), 100, 100) == 100
    assert chosen_rows(base(1.0, 1.01), 1000, 16) == 16  # a site has enough of its own
    assert chosen_rows(base(1.0, 1.01), 1000, 8) == 64  # several sites share
    assert chosen_rows(base(1.0, 1.01, mixed="they mix"), 100, 100) == 1


def test_sites_that_may_join_share_runs_while_their_values_are_small():
    given = base(1.0, 1.3)
    given.sites = [SimpleNamespace(values=[torch.zeros(1, 16, 64)])]  # 4 kB
    assert chosen_rows(given, 1000, 16) == 16
    assert chosen_rows(given, 1000, 16, joining=True) == 64  # as many as where sites are small
    given.sites.append(SimpleNamespace(values=[torch.zeros(1, 16, 256)]))
    assert chosen_rows(given, 1000, 16, joining=True) == 800_000 // 16384
    given.sites.append(SimpleNamespace(values=[torch.zeros(1, 16, 4096)]))
    assert chosen_rows(given, 1000, 16, joining=True) == 16


def test_rows_fit_into_memory(monkeypatch):
    monkeypatch.setattr("nethook.interp.sweeping.chunks.free_memory", lambda _: 80_000_000)
    assert chosen_rows(base(1.0, 1.001, megabytes=5), 100, 100) == 4  # a quarter, of 5 MB each
    assert chosen_rows(base(1.0, 1.001, megabytes=50), 100, 100) == 1
