"""Predict three molecular properties with one trunk and three heads; only the last property learned, because the gradients were cleared inside the loop over the tasks.

expect: gradient-wiped
line: optimizer.zero_grad()
source: https://github.com/meta-pytorch/opacus/issues/93
metric: mean R2 over the three properties on held-out molecules, higher is better
"""
import argparse

import torch
from torch import nn

PROPERTIES = ["logp", "solubility", "polar_area"]


def make_molecules(n, generator):
    """Random descriptors and three smooth functions of them."""
    x = torch.randn(n, 16, generator=generator)
    logp = x[:, :5].sum(1) * 0.5 + torch.tanh(x[:, 5] * x[:, 6])
    solubility = torch.sin(x[:, 7] * 1.5) + 0.7 * x[:, 8] - 0.5 * x[:, 9]
    polar_area = 0.6 * (x[:, 10] ** 2 - 1) + x[:, 11] - x[:, 12]
    y = torch.stack([logp, solubility, polar_area], 1)
    return x, (y - y.mean(0)) / y.std(0)


class PropertyNet(nn.Module):
    def __init__(self, n_in=16, width=64):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.heads = nn.ModuleDict({name: nn.Linear(width, 1) for name in PROPERTIES})

    def forward(self, x, task):
        return self.heads[task](self.trunk(x)).squeeze(1)


def train(model, x, y, epochs, batch_size, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    loss_fn = nn.MSELoss()
    for epoch in range(epochs):
        order = torch.randperm(len(x))
        running = {name: 0.0 for name in PROPERTIES}
        for idx in order.split(batch_size):
            for k, task in enumerate(PROPERTIES):
                optimizer.zero_grad()
                loss = loss_fn(model(x[idx], task), y[idx, k])
                loss.backward()
                running[task] += loss.item() * len(idx)
            optimizer.step()
        if epoch % 5 == 0:
            print(epoch, {k: round(v / len(x), 3) for k, v in running.items()})


@torch.no_grad()
def r2(model, x, y):
    model.eval()
    scores = []
    for k, task in enumerate(PROPERTIES):
        residual = (model(x, task) - y[:, k]).pow(2).sum()
        scores.append(1 - residual / (y[:, k] - y[:, k].mean()).pow(2).sum())
    return torch.stack(scores).mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    g = torch.Generator().manual_seed(args.seed)
    x, y = make_molecules(2000, g)
    model = PropertyNet()
    train(model, x[:1600], y[:1600], epochs=25, batch_size=64, lr=2e-3)
    print(f"metric: {r2(model, x[1600:], y[1600:]):.4f}")


if __name__ == "__main__":
    main()
