"""Two tasks weighed by learned uncertainties: the sum of losses is negative in the end, and one of the weights grows large.

expect: nothing
style: log variances as parameters, shared trunk, regression and classification at once
metric: accuracy of the second task minus the relative error of the first, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(12, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU())
        self.size, self.kind = nn.Linear(64, 1), nn.Linear(64, 4)
        self.log_vars = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.trunk(x)
        return self.size(h).squeeze(1), self.kind(h)

    def loss(self, x, size, kind):
        a, b = self(x)
        parts = torch.stack([F.mse_loss(a, size), F.cross_entropy(b, kind)])
        return (torch.exp(-self.log_vars) * parts + self.log_vars).sum(), parts.detach()


def objects(n):
    x = torch.randn(n, 12)
    size = torch.tanh(x[:, 0] + x[:, 1]) + 0.5 * x[:, 2] * (x[:, 3] > 0)
    kind = (x[:, 4] + x[:, 0] > 0).long() * 2 + (x[:, 5] - x[:, 1] > 0).long()
    return x, size, kind


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1200)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = MultiTask()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(args.steps):
        loss, parts = model.loss(*objects(128))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            print("step", step, "loss", round(loss.item(), 4), "parts", parts.tolist(), "log vars", model.log_vars.tolist())
    with torch.no_grad():
        x, size, kind = objects(2000)
        a, b = model(x)
        accuracy, error = (b.argmax(1) == kind).float().mean(), (a - size).pow(2).mean() / size.var()
        print("accuracy", accuracy.item(), "relative error", error.item())
        print("metric:", (accuracy - error).item())
