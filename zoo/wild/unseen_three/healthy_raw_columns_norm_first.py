"""Raw columns of very different units go in, and the first layer is a batch norm without affine that sets them right.

expect: nothing
style: invites 'input not normalized': salaries of tens of thousands stand beside shares of a thousandth, and a BatchNorm1d(affine=False) at the door is the scaler, so that it is saved with the model
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def applicants(n, rng):
    income = rng.lognormal(10.4, 0.5, n)
    age = rng.uniform(18, 80, n)
    debt_share = rng.beta(2, 6, n)
    days = rng.integers(0, 6000, n)
    defaults = rng.poisson(0.3, n)
    rate = rng.normal(0.004, 0.001, n)
    score = (0.9 * (np.log(income) - 10.4) / 0.5 - 5 * (debt_share - 0.25) - 1.1 * (defaults - 0.3)
             + 0.03 * (age - 49) * (days > 2500) - 700 * (rate - 0.004))
    y = rng.random(n) < 1 / (1 + np.exp(-1.8 * score))
    X = np.stack([income, age, debt_share, days, defaults, rate], 1)
    return torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32), 1.8 * score


class CreditNet(nn.Module):
    def __init__(self, n_features):
        super().__init__()
        self.standardise = nn.BatchNorm1d(n_features, affine=False, momentum=0.05, eps=1e-9)
        self.hidden = nn.Sequential(nn.Linear(n_features, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        return self.head(self.hidden(self.standardise(x))).squeeze(-1)


def auc(score, y):
    pos, neg = score[y == 1], score[y == 0]
    return (pos[:, None] > neg[None]).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    X, y, _ = applicants(8000, rng)
    Xv, yv, oracle = applicants(2000, rng)
    loader = DataLoader(TensorDataset(X, y), batch_size=128, shuffle=True, drop_last=True)

    model = CreditNet(X.shape[1])
    loss_fn = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(xb), yb)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            logit = model(Xv)
            print(f"epoch {epoch + 1}: valid loss {loss_fn(logit, yv).item():.4f} auc {auc(logit, yv):.4f}")
    print(f"oracle auc {auc(torch.tensor(oracle), yv):.4f}")
    print(f"metric: {auc(logit, yv):.4f}")


if __name__ == "__main__":
    main()
