"""Facts about sites and parameters: what is counted, what is written, and when."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.watching.facts.facts import distinct_rows


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_distinct_rows_against_numpy(rows):
    torch.manual_seed(rows)
    few = torch.randn(rows, 6)
    matrix = few[torch.arange(20) % rows]
    expected = len(np.unique(matrix.numpy(), axis=0))
    assert int(distinct_rows(matrix, 1e-13)) == expected == rows


def test_equal_rows_up_to_rounding_are_one():
    matrix = torch.ones(2, 4)
    matrix[1, 0] += 1e-6
    assert int(distinct_rows(matrix, 1e-13)) == 2
    assert int(distinct_rows(matrix, 1e-3)) == 1


def test_an_empty_matrix_has_none():
    assert int(distinct_rows(torch.zeros(0, 3), 0.0)) == 0


def trained(folder, steps=5, *, freeze=None, equal=False):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.1), nn.Tanh(), nn.Linear(6, 3))
    if equal:
        nn.init.constant_(model[0].weight, 0.5)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook.watch(model, optimizer, to=folder / "run.db", budget=None) as watch:
        watch.be_silent()
        for step in range(steps):
            if step == freeze:
                model[0].bias.requires_grad_(False)
            optimizer.zero_grad()
            F.cross_entropy(model(torch.randn(8, 4)), torch.randint(3, (8,))).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            model(torch.randn(2, 4))
    run = nethook.open_run(folder / "run.db")
    return run, {site.address: site for site in run.sites}


def test_sites_say_what_they_are_and_how_often_they_were_called(tmp_path):
    run, sites = trained(tmp_path)
    with run:
        info = sites["2"].info
        assert sites["2"].kind == "Tanh"
        assert info["activation"] == "bounded"
        assert info["bounds"] == [-1, 1]
        assert info["calls"] == {"train": 5, "eval": 1, "aux": 0}
        assert info["shape"] == [8, 6]
        assert info["batch"] == [8, 8, 8]
        assert [sites[str(number)].info["first_call"] for number in range(4)] == [0, 1, 2, 3]


def test_modes_are_told_by_phase(tmp_path):
    run, sites = trained(tmp_path)
    with run:
        modes = [list(mode) for mode in sites["1"].info["modes"]]
        assert modes == [[0, "train", True], [5, "eval", False]]


def test_parameters_say_how_often_they_had_a_gradient_and_moved(tmp_path):
    run, sites = trained(tmp_path)
    with run:
        info = sites["0.weight"].info
        assert (info["steps"], info["with_grad"], info["moved"]) == (5, 5, [5, 5])
        assert info["groups"] == [["0", 0]]
        assert info["elements"] == 24
        assert run.info["totals"]["optimizer_steps"] == {"0": 5}


def test_units_that_start_equal_are_counted_in_the_first_four_steps(tmp_path):
    run, sites = trained(tmp_path, equal=True)
    with run:
        info = sites["0.weight"].info
        assert info["rows"] == 6
        assert sorted(info["distinct_rows"]) == ["0", "1", "2", "3"]
        assert info["distinct_rows"]["0"] == 1
        assert sites["3.weight"].info["distinct_rows"]["0"] == 3


def test_a_parameter_that_is_frozen_later_is_an_event(tmp_path):
    run, sites = trained(tmp_path, freeze=2)
    with run:
        assert sites["0.bias"].info["requires_grad"] is False
        texts = [event.message for event in run.events]
        assert "requires_grad of 1 parameters changed" in texts
