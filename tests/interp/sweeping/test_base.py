"""The base run: what is learnt from it."""

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.addresses.tree import Tree
from nethook.interp.sweeping.base import BaseRun
from nethook.interp.sweeping.sites import Wanted


def based(model, x, metric, at="0", source=None):
    source = None if source is None else Inputs((source,))
    with torch.no_grad():
        wanted = Wanted(Tree(model), at, "")
        return BaseRun(model, Tree(model), Inputs((x,)), metric, wanted, source)


def test_rows_are_found_and_a_second_run_was_timed():
    base = based(nn.Sequential(nn.Linear(3, 4), nn.Tanh()), torch.ones(2, 3), lambda o: o[:, 0])
    assert (base.rows, base.whole, base.mixed) == (2, "", "")
    assert base.layout.dims[""] == base.layout.dims["0"] == (0,)
    assert base.sites[0].batch == 0
    assert min(base.seconds) > 0


def test_a_metric_for_one_number_of_rows_is_called_for_each_copy():
    target = torch.tensor([1, 0])
    base = based(
        nn.Sequential(nn.Linear(3, 4)), torch.randn(2, 3), lambda o: o[torch.arange(2), target]
    )
    output = base.model(base.repeated(3).args[0])
    assert torch.allclose(base.numbers(output, 3), base.metric.expand(3, 2))


def test_a_model_that_takes_one_size_of_batch_runs_cell_by_cell():
    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 4)

        def forward(self, x):
            return self.layer(x).reshape(2, 4)

    base = based(Fixed(), torch.ones(2, 3), lambda o: o[:, 0], at="layer")
    assert base.mixed.startswith("a batch of several copies failed (RuntimeError: shape")
    assert base.whole == base.mixed
    whole = based(nn.Sequential(nn.Linear(3, 4)), torch.ones(5, 3), lambda o: o.sum(0), at="0")
    assert whole.mixed == "no input has 4 rows, as many as the metric has numbers"


def test_a_source_of_the_same_shape_runs_beside_the_base():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    calls = []
    model.register_forward_pre_hook(lambda _, args: calls.append(len(args[0])))
    x, source = torch.randn(2, 2, 3)
    base = based(model, x, lambda o: o[:, 0], "1", source)
    assert calls == [2, 6]
    assert base.mixed == ""
    with torch.no_grad():
        torch.testing.assert_close(base.beside.values["1"][0], model[:2](source))
        torch.testing.assert_close(base.beside.metric, model(source)[:, 0])
    assert base.beside.values["1"][0].shape == (2, 4)


def test_a_source_that_is_nearly_the_base_or_shaped_otherwise_runs_by_itself():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, 4)), torch.randn(2, 3)
    for source in (x, x + 1e-5, torch.randn(1, 3), torch.randn(2, 3, dtype=torch.double)):
        base = based(model, x, lambda o: o[:, 0], source=source)
        assert (base.beside, base.mixed) == (None, "")


def test_rows_that_mix_before_the_site_are_noticed_beside_a_source():
    class Mixing(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 4)

        def forward(self, x):
            return self.layer(x - x.mean(0))

    torch.manual_seed(0)
    x, source = torch.randn(2, 2, 3)
    base = based(Mixing(), x, lambda o: o[:, 0], "layer", source)
    assert base.mixed == base.whole == "rows of a batch depend on each other"
    assert base.beside is None
