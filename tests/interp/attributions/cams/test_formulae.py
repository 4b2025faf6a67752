"""The formulae of the family, written out by loops."""

import torch

from nethook.interp.attributions.cams.formulae import (
    grad_cam_map,
    hires_map,
    layer_map,
    masks_of,
    plus_plus_map,
)

A, G = torch.randn(2, 2, 3, 4, 5, generator=torch.Generator().manual_seed(0)).double()


def test_by_loops():
    for row in range(2):
        for y in range(4):
            for x in range(5):
                a, g = A[row, :, y, x], G[row, :, y, x]
                mean = torch.stack([G[row, k].mean() for k in range(3)])
                expected = {
                    grad_cam_map: (mean * a).sum(),
                    hires_map: (g * a).sum(),
                    layer_map: (g.clamp(min=0) * a).sum(),
                }
                for formula, value in expected.items():
                    assert torch.allclose(formula(A, G)[row, y, x], value)


def test_plus_plus():
    weights = torch.zeros(2, 3).double()
    for row in range(2):
        for k in range(3):
            g, total = G[row, k], A[row, k].sum()
            alpha = g**2 / (2 * g**2 + total * g**3)
            weights[row, k] = (alpha * g.clamp(min=0)).sum()
    expected = torch.einsum("rk,rkyx->ryx", weights, A)
    assert torch.allclose(plus_plus_map(A, G), expected)
    assert not plus_plus_map(A, torch.zeros_like(G)).any()  # nothing by nothing is nothing


def test_masks_lie_between_zero_and_one():
    masks = masks_of(A, (8, 10))
    assert masks.shape == (2, 3, 8, 10)
    assert masks.amin((2, 3)).allclose(torch.zeros(2, 3).double())
    assert masks.amax((2, 3)).allclose(torch.ones(2, 3).double())
    assert not masks_of(torch.ones(1, 1, 4, 5), (8, 10)).any()
