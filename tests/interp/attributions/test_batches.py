"""How many rows share a run, and that results do not depend on it."""

import pytest
import torch
from torch import nn

from nethook import interp
from nethook.interp.attributions import batches
from nethook.interp.attributions.batches import rows_per_run, runs_of
from nethook.interp.attributions.subject import subject

MODEL = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2)).double()
X = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)).double()


def test_rows_follow_memory(monkeypatch):
    # Tanh keeps its result: 64 numbers of 8 bytes per row.
    monkeypatch.setattr(batches, "_ON_CPU", 64 * 8 * 10)
    with subject(MODEL, X, 0, None) as study:
        assert rows_per_run(study, 1000) == 10
        assert rows_per_run(study, 3) == 3  # few enough: nothing is measured
    with subject(MODEL, X, lambda out: out[:, 0], None) as study:
        assert rows_per_run(study, 1000) == 10  # two whole copies of five rows
        monkeypatch.setattr(batches, "_ON_CPU", 64 * 8 * 3)
        assert rows_per_run(study, 1000) == 5  # at least the batch itself
    assert runs_of(11, 5) == 3


@pytest.mark.parametrize("target", [[0, 1, 0, 1, 1], lambda out: out[:, 0] - out[:, 1]])
def test_results_do_not_depend_on_batches(monkeypatch, target):
    whole = interp.integrated_gradients(MODEL, X, target=target, baseline=0, tol=1e-9)
    noisy = interp.smooth_grad(MODEL, X, target=target, samples=5)
    monkeypatch.setattr(batches, "_ON_CPU", 64 * 8 * 3)
    parts = interp.integrated_gradients(MODEL, X, target=target, baseline=0, tol=1e-9)
    assert parts.runs > whole.runs
    assert torch.allclose(parts.values, whole.values, atol=1e-12)
    again = interp.smooth_grad(MODEL, X, target=target, samples=5)
    assert torch.allclose(again.values, noisy.values, atol=1e-12)


def test_a_row_does_not_depend_on_its_batch():
    for method in (interp.integrated_gradients, interp.op_lift, interp.shapley, interp.occlusion):
        together = method(MODEL, X, target=0, baseline=0)
        alone = method(MODEL, X[3:4], target=0, baseline=0)
        assert torch.allclose(together.values[3:4], alone.values, atol=1e-12)
    together = interp.gradient_shap(MODEL, X, target=0, baseline=X[:2], samples=6)
    alone = interp.gradient_shap(MODEL, X[3:4], target=0, baseline=X[:2], samples=6)
    assert torch.allclose(together.values[3:4], alone.values, atol=1e-12)
