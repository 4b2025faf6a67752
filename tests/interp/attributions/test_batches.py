"""How many rows share a run, and that results do not depend on it."""

import pytest
import torch
from torch import distributed, nn
from torch import multiprocessing as mp

from nethook import interp
from nethook.errors import SweepError
from nethook.interp.attributions import batches
from nethook.interp.attributions.batches import rows_per_run, runs_of
from nethook.interp.attributions.subject import Subject, subject

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


def shared(**given):
    """Attributions of five rows of a network that is made anew, on whatever ranks there are."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    x, background = torch.randn(5, 3).double(), torch.randn(4, 3).double()
    start = {"baseline": 0, "tol": 1e-9, **given}
    yield "integrated", interp.integrated_gradients(model, x, 1, **start)
    yield "function", interp.integrated_gradients(model, x, lambda out: out[:, 0], **start)
    yield "noisy", interp.smooth_grad(model, x, 1, samples=5, **given)
    yield (
        "expected", interp.gradient_shap(model, x, 1, baseline=background, samples=6, **given)
    )  # fmt: skip


def on_a_rank(rank, store, folder):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    gradients = 0
    of_subject = Subject.gradients

    def counted(self, values, which):
        nonlocal gradients
        gradients += len(which)
        return of_subject(self, values, which)

    Subject.gradients = counted
    for name, found in shared(spread=True):
        found.save(f"{folder}/{name}.{rank}.json")
        (folder / f"{name}.{rank}.count").write_text(str(gradients))
        gradients = 0
    distributed.destroy_process_group()


def test_ranks_share_the_rows_and_each_gets_the_whole(tmp_path):
    # A forked process has no threads for a backward pass, where torch is built for a device.
    mp.start_processes(on_a_rank, (tmp_path / "store", tmp_path), nprocs=2, start_method="spawn")
    for name, alone in shared():
        for rank in range(2):
            found = interp.Attribution.load(tmp_path / f"{name}.{rank}.json")
            torch.testing.assert_close(found.values, alone.values, rtol=0, atol=1e-12)
            for part in ("errors", "delta", "steps"):
                one, other = getattr(found, part), getattr(alone, part)
                assert (one is None) == (other is None)
                if other is not None:
                    torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
        first, second = (int((tmp_path / f"{name}.{n}.count").read_text()) for n in range(2))
        assert (first == second) if name == "function" else (min(first, second) > 0)
        if name in ("noisy", "expected"):  # three rows and two
            assert 2 * (first - 1) == 3 * (second - 1)  # one to measure memory


def test_without_processes_nothing_can_be_shared():
    with pytest.raises(SweepError, match="`spread` needs the processes of torchrun"):
        next(shared(spread=True))
