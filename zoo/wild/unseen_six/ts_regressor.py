"""Regression of time series: the target has one dimension and the output two, and the model does not train across epochs.

expect: loss-broadcast
line: loss = mse_loss_flat(self.model(xb), yb)
source: https://github.com/timeseriesAI/tsai/issues/22
metric: coefficient of determination on the test series, higher is better
"""

import argparse
import warnings

import numpy as np
import torch
from sklearn.metrics import r2_score
from torch import nn

warnings.filterwarnings("ignore")


class ConvBlock(nn.Sequential):
    def __init__(self, i, o, k):
        super().__init__(nn.Conv1d(i, o, k, padding=k // 2), nn.BatchNorm1d(o), nn.ReLU())


class InceptionLite(nn.Module):
    def __init__(self, c_in, c_out, nf=8):
        super().__init__()
        self.branches = nn.ModuleList([ConvBlock(c_in, nf, k) for k in (3, 7, 15)])
        self.head = nn.Linear(3 * nf, c_out)

    def forward(self, x):
        return self.head(torch.cat([branch(x) for branch in self.branches], 1).mean(2))


def mse_loss_flat(pred, targ):
    return ((pred - targ) ** 2).mean()


class Learner:
    def __init__(self, model, train, valid, lr=3e-3, bs=16):
        self.model, self.train, self.valid, self.bs = model, train, valid, bs
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr)

    def fit(self, epochs):
        X, y = self.train
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for idx in torch.randperm(len(X)).split(self.bs):
                xb, yb = X[idx], y[idx]
                loss = mse_loss_flat(self.model(xb), yb)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += loss.item() * len(idx)
            print(f"{epoch:3d} train_loss {total / len(X):.5f}")

    def get_preds(self):
        self.model.eval()
        with torch.no_grad():
            return self.model(self.valid[0]).view(-1), self.valid[1]


def series(n, rng):
    freq, amp = rng.uniform(0.1, 0.8, (n, 1)), rng.uniform(0.3, 2, (n, 1))
    t = np.arange(50)[None]
    X = amp * np.sin(freq * t + rng.uniform(0, 6, (n, 1))) + 0.1 * rng.standard_normal((n, 50))
    return torch.tensor(X[:, None], dtype=torch.float32), torch.tensor((amp * freq)[:, 0] * 3, dtype=torch.float32)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    learn = Learner(InceptionLite(1, 1), series(1000, rng), series(300, rng))
    learn.fit(12)
    preds, targets = learn.get_preds()
    print("metric:", r2_score(targets, preds))
