"""Gradient accumulation of a classifier on features: optimizer.zero_grad(set_to_none=True) is in the inner loop over micro-batches.

expect: gradient-wiped
line: optimizer.zero_grad(set_to_none=True)
source: https://github.com/bytetriper/RAE/issues/67
metric: test accuracy, higher is better
"""

import argparse
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import make_classification
from torch import nn


@dataclass
class TrainConfig:
    steps: int = 150
    micro_batch: int = 2
    grad_accum_steps: int = 16
    lr: float = 0.4
    seed: int = 0


class Head(nn.Module):
    def __init__(self, d_in, d_hidden, n_out):
        super().__init__()
        self.norm = nn.LayerNorm(d_in)
        self.mlp = nn.Sequential(nn.Linear(d_in, d_hidden), nn.GELU(), nn.Linear(d_hidden, n_out))

    def forward(self, x):
        return self.mlp(self.norm(x))


def batches(x, y, size, rng):
    while True:
        idx = rng.integers(0, len(x), size)
        yield x[idx], y[idx]


def train(cfg: TrainConfig):
    torch.manual_seed(cfg.seed)
    rng = np.random.default_rng(cfg.seed)
    X, Y = make_classification(4000, 40, n_informative=20, n_classes=8, n_clusters_per_class=1, class_sep=1.2, flip_y=0.1, random_state=cfg.seed)
    X, Y = torch.tensor(X, dtype=torch.float32), torch.tensor(Y)
    stream = batches(X[:3000], Y[:3000], cfg.micro_batch, rng)
    model = Head(40, 64, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)
    criterion = nn.CrossEntropyLoss()
    for step in range(cfg.steps):
        step_loss = 0.0
        for micro_step in range(cfg.grad_accum_steps):
            x, y = next(stream)
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(x), y) / cfg.grad_accum_steps
            loss.backward()
            step_loss += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step:4d} | loss {step_loss:.4f}")
    model.eval()
    with torch.no_grad():
        return (model(X[3000:]).argmax(1) == Y[3000:]).float().mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    print("metric:", train(TrainConfig(seed=parser.parse_args().seed)))
