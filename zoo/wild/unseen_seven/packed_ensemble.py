"""An ensemble for tables with heavy-tailed targets: gradients are clipped before there are any.

expect: call-without-effect
or: exploding-gradient, diverged, learning-rate-too-high
line: torch.nn.utils.clip_grad_norm_(model.parameters(), gradient_clipping_norm)
source: https://github.com/yandex-research/tabm/issues/20
metric: median absolute error on test data, lower is better
"""

# %%
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
np.random.seed(seed)
torch.manual_seed(seed)

# %% a table whose target is hit by rare, enormous outliers
n_features, k = 12, 4
weights = np.random.randn(n_features, 3)


def table(n, outliers):
    x = np.random.randn(n, n_features)
    y = np.tanh(x @ weights / 2).sum(1) + 0.1 * np.random.randn(n)
    hit = np.random.rand(n) < outliers
    y[hit] += 300 * np.random.standard_cauchy(hit.sum()).clip(-8, 8)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


data = {"train": table(4000, 0.004), "test": table(1500, 0.0)}


# %%
class Model(nn.Module):
    """k networks with shared weights and adapters of their own."""

    def __init__(self, d=64):
        super().__init__()
        self.r = nn.Parameter(torch.randn(k, n_features).sign())
        self.first, self.second = nn.Linear(n_features, d), nn.Linear(d, d)
        self.heads = nn.Parameter(torch.randn(k, d) / d**0.5)
        self.bias = nn.Parameter(torch.zeros(k))

    def forward(self, x):
        h = F.relu(self.first(x[:, None] * self.r))
        h = F.relu(self.second(h))
        return (h * self.heads).sum(-1) + self.bias


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
gradient_clipping_norm = 1.0

# %%
for epoch in range(15):
    model.train()
    losses = []
    x, y = data["train"]
    for idx in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[idx]), y[idx][:, None].expand(-1, k))
        if gradient_clipping_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), gradient_clipping_norm)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        error = (model(data["test"][0]).mean(1) - data["test"][1]).abs().median().item()
    print(f"epoch {epoch:<3} loss {np.median(losses):.4f} (test) {error:.4f}")
print("metric:", error if np.isfinite(error) else 1e9)
