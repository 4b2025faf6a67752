"""Interchange in a subspace."""

import pytest
import torch
from torch import nn

import nethook
from nethook import edits
from nethook.errors import OptionError
from nethook.interp.subspaces.interchange import interchanged, orthonormal, site_value
from tests.interp.subspaces.planted import pairs, planted


def test_all_of_the_space_is_the_source_and_a_part_is_the_formula():
    model, unit = planted()
    base, source, _ = (nethook.inputs(each) for each in pairs(5))
    value = site_value(model, source, "0")
    whole = interchanged(model, base, value, "0", torch.eye(8).double(), None)
    torch.testing.assert_close(whole, source.call(model))
    part = interchanged(model, base, value, "0", unit[:, None], None)
    hidden = model[0](base.args[0])
    expected = hidden + ((value - hidden) @ unit)[:, None] * unit
    torch.testing.assert_close(part, model[1](expected))
    edit = edits.swap_subspace(value, unit[:, None])
    torch.testing.assert_close(edit(hidden), expected)
    with pytest.raises(nethook.errors.EditError, match=r"`basis` must have the shape \(8, size\)"):
        edits.swap_subspace(value, unit[:3, None])(hidden)


def test_one_position_alone_and_shapes():
    model = nn.Linear(3, 3).double()
    base, source = torch.randn(2, 2, 4, 3, dtype=torch.double)
    value = site_value(model, nethook.inputs(source), "")
    out = interchanged(model, nethook.inputs(base), value, "", torch.eye(3).double(), 2)
    expected = model(base).detach()
    expected[:, 2] = value[:, 2]
    torch.testing.assert_close(out, expected)
    with pytest.raises(OptionError, match="must give values of the base's shape"):
        interchanged(model, nethook.inputs(base), value[:, :3], "", torch.eye(3).double(), None)
    with pytest.raises(OptionError, match="`at` must be a site of"):
        site_value(nn.Conv2d(1, 1, 1), nethook.inputs(torch.ones(1, 1, 2, 2)), "")


def test_bases_are_orthonormal_and_stay_where_they_are():
    free = torch.randn(6, 2, dtype=torch.double)
    basis = orthonormal(free)
    torch.testing.assert_close(basis.T @ basis, torch.eye(2).double())
    torch.testing.assert_close(orthonormal(basis), basis)
