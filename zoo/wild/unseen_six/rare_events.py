"""Two percent of positives: the output bias starts at the log odds of the base rate, the loss is focal, and average precision is reported.

expect: nothing
style: bias initialisation, focal loss in logits, PR curve by sklearn, threshold chosen on validation data
metric: average precision on the test set, higher is better
"""

import argparse
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve
from torch.utils.data import DataLoader, TensorDataset


def transactions(n, rng):
    y = (rng.random(n) < 0.02).astype(np.float32)
    x = rng.standard_normal((n, 16)).astype(np.float32)
    x[:, :4] += 1.6 * y[:, None] * np.array([1, -1, 1, -1])
    x[:, 4] *= 1 + 2 * y
    return torch.tensor(x), torch.tensor(y)


def focal(logits, target, gamma=1.0):
    p = torch.sigmoid(logits)
    wrong = torch.where(target == 1, 1 - p, p)
    return (wrong**gamma * F.binary_cross_entropy_with_logits(logits, target, reduction="none")).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    (x, y), (x_val, y_val), (x_test, y_test) = transactions(12000, rng), transactions(3000, rng), transactions(5000, rng)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    with torch.no_grad():
        model[-1].bias.fill_(math.log(0.02 / 0.98))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loader = DataLoader(TensorDataset(x, y), batch_size=256, shuffle=True)
    for epoch in range(10):
        model.train()
        for xb, yb in loader:
            loss = focal(model(xb).squeeze(1), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print("epoch", epoch, "loss", loss.item(), "val AP", average_precision_score(y_val, model(x_val).squeeze(1)))
    with torch.no_grad():
        val, test = torch.sigmoid(model(x_val)).squeeze(1).numpy(), torch.sigmoid(model(x_test)).squeeze(1).numpy()
    precision, recall, thresholds = precision_recall_curve(y_val, val)
    best = thresholds[np.argmax((2 * precision * recall / (precision + recall + 1e-9))[:-1])]
    print("threshold", best, "F1", f1_score(y_test, test > best))
    print("metric:", average_precision_score(y_test, test))


if __name__ == "__main__":
    main()
