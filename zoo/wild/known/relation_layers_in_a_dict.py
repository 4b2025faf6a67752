"""One aggregation layer per relation, kept in a dict: model.parameters() never saw them.

expect: unregistered-layers
or: optimizer-misses-parameters
line: self.list_relations[rel] = nn.Linear(
source: https://github.com/pytorch/pytorch/issues/632
metric: test mean squared error, lower is better
"""

import sys

import numpy as np
import torch
from torch import nn

seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
torch.manual_seed(seed)
np.random.seed(seed)

numfeatures, numrel, hidden = 6, 10, 12


class RelationalNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.list_relations = {}
        for rel in range(numrel):
            self.list_relations[rel] = nn.Linear(numfeatures, hidden)
        self.combine = nn.Linear(hidden, 1)

    def forward(self, x, rel):
        out = torch.zeros(len(x), hidden)
        for r in range(numrel):
            mask = rel == r
            if mask.any():
                out[mask] = torch.tanh(self.list_relations[r](x[mask]))
        return self.combine(out).squeeze(1)


# every relation has its own linear law
laws = torch.randn(numrel, numfeatures) / numfeatures**0.5


def sample(n):
    x = torch.randn(n, numfeatures)
    rel = torch.randint(numrel, (n,))
    y = (laws[rel] * x).sum(1) + 0.05 * torch.randn(n)
    return x, rel, y


X, R, Y = sample(2000)
Xt, Rt, Yt = sample(500)
net = RelationalNet()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
mse = nn.MSELoss()

for epoch in range(6):
    perm = np.random.permutation(len(X))
    losses = []
    for i in range(0, len(X), 50):
        b = torch.as_tensor(perm[i : i + 50])
        opt.zero_grad()
        l = mse(net(X[b], R[b]), Y[b])
        l.backward()
        opt.step()
        losses.append(l.item())
    print("epoch", epoch, "train mse", np.mean(losses))

with torch.no_grad():
    print("metric: %.5f" % mse(net(Xt, Rt), Yt).item())
