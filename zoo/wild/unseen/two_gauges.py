"""Read temperature and pressure from one sensor array; the two losses are weighted by learned variances.

expect: nothing
style: multi-task with homoscedastic uncertainty: the total loss goes below zero as the tasks get precise, and two of the trained numbers belong to the loss and not to the network
"""
import argparse

import torch
from torch import nn


class Trunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(12, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.temperature = nn.Linear(64, 1)
        self.pressure = nn.Linear(64, 1)

    def forward(self, x):
        h = self.shared(x)
        return self.temperature(h).squeeze(1), self.pressure(h).squeeze(1)


class UncertaintyWeighting(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.log_var = nn.Parameter(torch.zeros(n))

    def forward(self, *losses):
        losses = torch.stack(losses)
        return (0.5 * torch.exp(-self.log_var) * losses + 0.5 * self.log_var).sum()


class SensorArray:
    def __init__(self):
        self.mix = torch.randn(2, 12)
        self.bend = torch.randn(2, 12)

    def read(self, n):
        state = torch.randn(n, 2)
        x = state @ self.mix + 0.5 * torch.sin(state @ self.bend) + 0.05 * torch.randn(n, 12)
        t = state[:, 0] + 0.02 * torch.randn(n)   # precise gauge
        p = state[:, 1] + 0.3 * torch.randn(n)    # coarse gauge
        return x, t, p, state


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--seed", type=int, default=0)
    torch.manual_seed(cli.parse_args().seed)
    array, model, weigh = SensorArray(), Trunk(), UncertaintyWeighting(2)
    optimizer = torch.optim.Adam([*model.parameters(), *weigh.parameters()], lr=4e-3)
    mse = nn.functional.mse_loss
    for step in range(1, 601):
        x, t, p, _ = array.read(128)
        t_hat, p_hat = model(x)
        loss = weigh(mse(t_hat, t), mse(p_hat, p))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 150 == 0:
            sigma = weigh.log_var.detach().mul(0.5).exp()
            print(f"step {step} loss {loss.item():+.3f} sigma {sigma[0]:.3f} {sigma[1]:.3f}")
    with torch.no_grad():
        x, _, _, state = array.read(2000)
        t_hat, p_hat = model(x)
        rmse = ((t_hat - state[:, 0]) ** 2 + (p_hat - state[:, 1]) ** 2).mean().sqrt().item()
    print(f"metric: {rmse:.4f}")


if __name__ == "__main__":
    main()
