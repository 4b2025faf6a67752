"""Ordinal regression (CORAL): one shared score, K-1 ordered thresholds, binary targets 'is the grade above k'.

expect: nothing
style: invites 'loss broadcast' and 'loss-target mismatch': a [B, 1] score is added to K-1 biases on purpose, and integer grades are expanded to [B, K-1] levels for a sum of binary losses
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

NUM_GRADES = 6


class Grades(Dataset):
    def __init__(self, n, rng):
        self.x = rng.normal(size=(n, 12)).astype(np.float32)
        latent = 1.2 * self.x[:, 0] + np.abs(self.x[:, 1]) * 1.5 - self.x[:, 2] * self.x[:, 3]
        cuts = [-0.6, 0.4, 1.2, 2.0, 3.0]
        self.y = np.digitize(latent + rng.logistic(0, 0.2, n), cuts).astype(np.int64)
        self.without_noise = np.digitize(latent, cuts)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        levels = (np.arange(NUM_GRADES - 1) < self.y[i]).astype(np.float32)
        return self.x[i], self.y[i], levels


class CoralMLP(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d, 64), nn.LeakyReLU(), nn.Linear(64, 32), nn.LeakyReLU())
        self.score = nn.Linear(32, 1, bias=False)
        self.coral_bias = nn.Parameter(torch.arange(k - 1, 0, -1).float() / (k - 1))

    def forward(self, x):
        return self.score(self.body(x)) + self.coral_bias


def coral_loss(logits, levels):
    terms = F.logsigmoid(logits) * levels + (F.logsigmoid(logits) - logits) * (1 - levels)
    return -terms.sum(1).mean()


@torch.no_grad()
def compute_mae(model, loader):
    model.eval()
    err = n = 0
    for x, y, _ in loader:
        grade = (torch.sigmoid(model(x)) > 0.5).sum(1)
        err += (grade - y).abs().sum().item()
        n += len(y)
    return err / n


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    train_loader = DataLoader(Grades(8000, rng), batch_size=64, shuffle=True, drop_last=True)
    valid_loader = DataLoader(Grades(1000, rng), batch_size=250)
    test_set = Grades(1000, rng)
    test_loader = DataLoader(test_set, batch_size=250)
    model = CoralMLP(12, NUM_GRADES)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
    for epoch in range(12):
        model.train()
        for batch_idx, (features, _, levels) in enumerate(train_loader):
            cost = coral_loss(model(features), levels)
            optimizer.zero_grad()
            cost.backward()
            optimizer.step()
        scheduler.step()
        print("Epoch: %02d/12 | cost %.4f | valid MAE %.4f" % (epoch + 1, cost.item(), compute_mae(model, valid_loader)))
    median = np.median(test_set.y)
    print("MAE of the median grade %.4f" % np.abs(test_set.y - median).mean())
    print("MAE of the true latent grade %.4f" % np.abs(test_set.y - test_set.without_noise).mean())
    print("metric: %.4f" % compute_mae(model, test_loader))


if __name__ == "__main__":
    main()
