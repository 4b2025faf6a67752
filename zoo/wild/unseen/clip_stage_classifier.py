"""Video-clip feature classifier with ReduceLROnPlateau watching the validation accuracy; the scheduler was left in its default mode for losses, read every gain as a plateau and cut the rate to nothing.

expect: scheduler-collapse
line: ReduceLROnPlateau(
source: https://github.com/md-mohaiminul/ViS4mer/issues/4
metric: test accuracy, higher is better
"""
import argparse
import math

import torch
from torch import nn, optim
from torch.optim.lr_scheduler import ReduceLROnPlateau


class ClipModel(nn.Module):
    """Temporal conv over pre-extracted frame features."""

    def __init__(self, d_in=12, d=32, n_classes=6):
        super().__init__()
        self.proj = nn.Conv1d(d_in, d, 3, padding=1)
        self.mix = nn.Conv1d(d, d, 3, padding=1)
        self.head = nn.Linear(d, n_classes)

    def forward(self, x):
        x = torch.relu(self.proj(x))
        x = torch.relu(self.mix(x)).mean(-1)
        return self.head(x)


def synth(n, g):
    """Six kinds of motion: frequency x direction, over twelve channels."""
    y = torch.randint(0, 6, (n,), generator=g)
    t = torch.linspace(0, 2 * math.pi, 20)
    freq = (1 + y % 3).float()[:, None, None]
    direction = torch.where(y < 3, 1.0, -1.0)[:, None, None]
    ch = torch.arange(12).float()[None, :, None]
    phase = torch.rand(n, 1, 1, generator=g) * 6.28
    x = torch.sin(freq * t[None, None] * direction + ch * 0.8 + phase)
    return x + 1.2 * torch.randn(n, 12, 20, generator=g), y


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        acc = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return acc


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--num_epochs", type=int, default=15)
    cfg = ap.parse_args()
    torch.manual_seed(cfg.seed)
    g = torch.Generator().manual_seed(100 + cfg.seed)
    x_tr, y_tr = synth(1200, g)
    x_va, y_va = synth(300, g)
    x_te, y_te = synth(600, g)

    model = ClipModel()
    optimizer = optim.AdamW(model.parameters(), lr=7e-4, weight_decay=0.01)
    scheduler = ReduceLROnPlateau(optimizer, patience=1, factor=0.1)

    for epoch in range(cfg.num_epochs):
        for idx in torch.randperm(len(x_tr)).split(64):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x_tr[idx]), y_tr[idx])
            loss.backward()
            optimizer.step()
        val_acc = evaluate(model, x_va, y_va)
        scheduler.step(val_acc)
        print(f"epoch {epoch:2d}  loss {loss.item():.3f}  val acc {val_acc:.3f}")

    print(f"metric: {evaluate(model, x_te, y_te):.4f}")
