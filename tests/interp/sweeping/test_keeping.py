"""A sweep that was broken off goes on; another one does not."""

import pytest
import torch
from torch import nn

from nethook import edits, interp
from nethook.errors import ResultError, SweepError
from nethook.interp import Sweep
from nethook.interp.sweeping.keeping import Kept, digest


def first(out):
    return out[:, 0]


class Stops(nn.Module):
    """A layer that fails after some calls."""

    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def forward(self, x):
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        return x


def net(calls):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), Stops(calls))


X = torch.tensor([[1.0, 2.0, 3.0]])


def test_it_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr("nethook.interp.sweeping.keeping._EVERY", -1.0)
    to = tmp_path / "r.json"
    options = {"at": ["0", "1"], "over": "units", "change": edits.zero(), "metric": first}
    whole = interp.sweep(net(1000), X, rows=1, **options)
    # The stopping layer counts down in every run, which sweep() undoes at its end.
    with pytest.raises(KeyboardInterrupt):
        interp.sweep(net(2 + 3), X, rows=1, to=to, **options)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.part.json", "r.part.safetensors"]
    with pytest.raises(SweepError, match=r"r.part.json has a part of another sweep: change differ"):
        interp.sweep(net(9), X, rows=1, to=to, **(options | {"change": edits.scale(2)}))
    rest = interp.sweep(net(2 + 5), X, rows=1, to=to, **options)
    assert rest.runs == 5
    assert torch.equal(rest.values, whole.values)
    assert torch.equal(Sweep.load(to).values, whole.values)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.json", "r.safetensors"]


def test_a_damaged_part_is_refused(tmp_path):
    values, done = torch.ones(1, 2, 3), torch.ones(1, 2, dtype=torch.bool)
    Kept(tmp_path / "r.json", {"a": 1}).write(values, done, 0.5, now=True)
    again = Kept(tmp_path / "r.json", {"a": 1})
    assert again.read(values.clone(), done.clone()) == 0.5
    with pytest.raises(ResultError, match="its numbers have another shape"):
        again.read(torch.ones(2, 2, 3), torch.ones(2, 2, dtype=torch.bool))


def test_the_same_numbers_have_the_same_digest():
    assert digest(torch.ones(2)) == digest(torch.ones(2)) != digest(torch.ones(3))
