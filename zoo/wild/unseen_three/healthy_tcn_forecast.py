"""A dilated causal convolution net forecasts 12 hours of a daily and weekly load curve from the last 96.

expect: nothing
style: Forecaster class with fit / predict, scaler fitted on the training part, weight norm, ReduceLROnPlateau on validation
"""
import copy
import sys

import numpy as np
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


class Chomp(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, x):
        return x[..., :-self.n]


class Block(nn.Module):
    def __init__(self, cin, cout, dilation, k=3):
        super().__init__()
        pad = (k - 1) * dilation
        self.net = nn.Sequential(
            weight_norm(nn.Conv1d(cin, cout, k, padding=pad, dilation=dilation)), Chomp(pad), nn.ReLU(), nn.Dropout(0.05),
            weight_norm(nn.Conv1d(cout, cout, k, padding=pad, dilation=dilation)), Chomp(pad), nn.ReLU(), nn.Dropout(0.05))
        self.skip = nn.Conv1d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x):
        return torch.relu(self.net(x) + self.skip(x))


class TCN(nn.Module):
    def __init__(self, horizon, width=12):
        super().__init__()
        self.blocks = nn.Sequential(*[Block(1 if i == 0 else width, width, 2 ** i) for i in range(5)])
        self.out = nn.Linear(width, horizon)

    def forward(self, x):
        return self.out(self.blocks(x)[..., -1])


class Forecaster:
    def __init__(self, lookback=96, horizon=12, lr=2e-3, batch_size=64, max_epochs=6):
        self.lookback, self.horizon = lookback, horizon
        self.lr, self.batch_size, self.max_epochs = lr, batch_size, max_epochs
        self.net = TCN(horizon)

    def windows(self, series):
        w = np.lib.stride_tricks.sliding_window_view((series - self.mean) / self.std, self.lookback + self.horizon)
        w = torch.tensor(w.copy(), dtype=torch.float32)
        return w[:, None, :self.lookback], w[:, self.lookback:]

    def fit(self, train, valid):
        self.mean, self.std = train.mean(), train.std()
        X, y = self.windows(train)
        Xv, yv = self.windows(valid)
        opt = torch.optim.Adam(self.net.parameters(), lr=self.lr)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.3, patience=1)
        loss_fn = nn.HuberLoss()
        best = (float("inf"), None)
        for epoch in range(self.max_epochs):
            self.net.train()
            total = 0.0
            for idx in torch.randperm(len(X)).split(self.batch_size):
                opt.zero_grad()
                loss = loss_fn(self.net(X[idx]), y[idx])
                loss.backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
                opt.step()
                total += loss.item() * len(idx)
            self.net.eval()
            with torch.no_grad():
                v = loss_fn(self.net(Xv), yv).item()
            plateau.step(v)
            if v < best[0]:
                best = (v, copy.deepcopy(self.net.state_dict()))
            print("epoch %d train %.4f valid %.4f" % (epoch, total / len(X), v))
        self.net.load_state_dict(best[1])
        return self

    @torch.no_grad()
    def score(self, series):
        self.net.eval()
        X, y = self.windows(series)
        return 1 - ((self.net(X) - y) ** 2).mean().item() / y.var().item()


if __name__ == "__main__":
    seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    t = np.arange(4200)
    ar = np.zeros(len(t))
    for i in range(1, len(t)):
        ar[i] = 0.9 * ar[i - 1] + rng.normal(0, 0.12)
    day, week = np.sin(2 * np.pi * t / 24), np.sin(2 * np.pi * t / 168)
    load = 40 + 8 * (day * (1 + 0.4 * week) + 0.5 * np.cos(4 * np.pi * t / 24) + 0.3 * week + ar)
    f = Forecaster().fit(load[:3000], load[3000:3600])
    print("metric: %.4f" % f.score(load[3600:]))
