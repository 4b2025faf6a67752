"""An echo state network: the recurrent weights are random and stay so on purpose, only the readout learns.

expect: nothing
style: buffers instead of parameters, states computed under no_grad, mini-batches of states
metric: squared error of the next value relative to the variance, lower is better
"""

import argparse

import torch
import torch.nn as nn


class Reservoir(nn.Module):
    def __init__(self, size=150, radius=0.9):
        super().__init__()
        w = torch.randn(size, size) * (torch.rand(size, size) < 0.1)
        w = w * radius / torch.linalg.eigvals(w).abs().max()
        self.register_buffer("w", w)
        self.register_buffer("w_in", torch.rand(size, 1) * 2 - 1)
        self.readout = nn.Linear(size, 1)

    @torch.no_grad()
    def states(self, u):
        h, out = torch.zeros(len(self.w)), []
        for value in u:
            h = torch.tanh(self.w @ h + self.w_in[:, 0] * value)
            out.append(h)
        return torch.stack(out)

    def forward(self, h):
        return self.readout(h).squeeze(-1)


def mackey_glass(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = (0.5 + torch.rand(18, generator=g)).tolist()
    for _ in range(n + 200):
        x.append(x[-1] + 0.2 * x[-18] / (1 + x[-18] ** 10) - 0.1 * x[-1])
    return torch.tensor(x[-n:])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    series = mackey_glass(3000, args.seed) - 0.9
    model = Reservoir()
    h = model.states(series[:-1])[100:]
    y = series[1:][100:]
    optimizer = torch.optim.Adam(model.readout.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.93)
    for epoch in range(40):
        for i in torch.randperm(2200).split(110):
            loss = nn.functional.mse_loss(model(h[i]), y[i])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        if epoch % 8 == 0:
            print("epoch", epoch, "loss", loss.item())
    with torch.no_grad():
        print("metric:", (nn.functional.mse_loss(model(h[2200:]), y[2200:]) / y[2200:].var()).item())
