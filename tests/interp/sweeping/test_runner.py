"""One run of several cells, of several sites: every copy has its own change and no other."""

import torch
from torch import nn

from nethook import edits
from nethook.addresses.inputs import Inputs
from nethook.addresses.tree import Tree
from nethook.interp.sweeping.base import BaseRun
from nethook.interp.sweeping.changes import as_change
from nethook.interp.sweeping.runner import Place, Runner
from nethook.interp.sweeping.sites import Wanted


def test_cells_of_several_sites_and_the_base_in_one_run():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2)).double()
    x = torch.randn(2, 3, dtype=torch.double)
    with torch.no_grad():
        tree = Tree(model)
        base = BaseRun(model, tree, Inputs((x,)), lambda o: o[:, 0], Wanted(tree, ["0", "1"], ""))
        runner = Runner(base, base.sites, as_change(edits.zero()))
        cells = {site.address: base.cells("units", site) for site in base.sites}
        zero, one = base.sites
        places = [Place(one, cells["1"][3], (1, 3)), None, Place(zero, cells["0"][0], (0, 0))]
        with runner.attached(single=False):
            numbers = runner.run(places)
            alone = [runner.run([place])[0] for place in places]
        assert runner.runs == 4
        first, second = model[0](x).clone(), model[1](model[0](x)).clone()
        first[:, 0], second[:, 3] = 0, 0
        expected = [model[2](second), model(x), model[1:](first)]
    for got, single, want in zip(numbers, alone, expected, strict=True):
        torch.testing.assert_close(got, want[:, 0], rtol=0, atol=1e-10)
        torch.testing.assert_close(single, want[:, 0], rtol=0, atol=1e-12)
