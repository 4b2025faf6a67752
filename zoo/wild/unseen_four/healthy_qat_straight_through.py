"""Quantisation-aware training to 3-bit weights and 4-bit activations with straight-through rounding.

expect: nothing
style: autograd.Function whose backward ignores the rounding on purpose, learned clip per layer, first and last layer kept fine
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class RoundSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class QuantLinear(nn.Linear):
    def __init__(self, n_in, n_out, bits=3):
        super().__init__(n_in, n_out)
        self.levels = 2 ** (bits - 1) - 1

    def quantised_weight(self):
        step = self.weight.detach().abs().amax(1, keepdim=True).clamp_min(1e-8) / self.levels
        return RoundSTE.apply(self.weight / step) * step

    def forward(self, x):
        return F.linear(x, self.quantised_weight(), self.bias)


class PACT(nn.Module):
    """Clipped ReLU with a learned ceiling, rounded to 2^bits levels."""

    def __init__(self, bits=4, alpha=4.0):
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor(alpha))
        self.n = 2**bits - 1

    def forward(self, x):
        y = torch.minimum(F.relu(x), self.alpha)
        scale = self.alpha / self.n
        return RoundSTE.apply(y / scale) * scale


class QNet(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(64, width), nn.BatchNorm1d(width), PACT(),
            QuantLinear(width, width), nn.BatchNorm1d(width), PACT(),
            QuantLinear(width, width), nn.BatchNorm1d(width), PACT())
        self.classifier = nn.Linear(width, 10)

    def forward(self, x):
        return self.classifier(self.features(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor((x - 4.88) / 6.02, dtype=torch.float32), torch.tensor(y)
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    train = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=64, shuffle=True, drop_last=True)
    model = QNet()
    alphas = [p for n, p in model.named_parameters() if n.endswith("alpha")]
    others = [p for n, p in model.named_parameters() if not n.endswith("alpha")]
    optimizer = torch.optim.Adam([{"params": others}, {"params": alphas, "weight_decay": 1e-3}], lr=2e-3)
    epochs = 14
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for xb, yb in train:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            acc = (model(x[1400:]).argmax(1) == y[1400:]).float().mean().item()
        print(f"epoch {epoch} loss {total / len(train):.4f} acc {acc:.4f} alpha {[round(a.item(), 2) for a in alphas]}")
    distinct = max(len(row.unique()) for row in model.features[3].quantised_weight().detach())
    assert distinct <= 7
    print(f"metric: {acc:.4f}")


if __name__ == "__main__":
    main()
