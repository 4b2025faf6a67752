"""The optimizers get their schedule, a slow warm-up, from a wrapper; no training script ever calls its scheduler() method.

expect: call-without-effect
or: learning-rate-too-low
line: optimizer.step("text_encoder")
source: https://github.com/yl4579/StyleTTS2/issues/274
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits


class MultiOptimizer:
    """One optimizer and one schedule per part of the model."""

    def __init__(self, optimizers, schedulers):
        self.optimizers = optimizers
        self.schedulers = schedulers

    def zero_grad(self):
        for opt in self.optimizers.values():
            opt.zero_grad()

    def step(self, key=None):
        for name in [key] if key is not None else self.optimizers:
            self.optimizers[name].step()

    def scheduler(self, key=None):
        for name in [key] if key is not None else self.schedulers:
            self.schedulers[name].step()


def build_optimizer(parts, lr, warmup, total):
    optimizers = {name: torch.optim.AdamW(part.parameters(), lr=lr, betas=(0.9, 0.99)) for name, part in parts.items()}

    def rate(step):
        return max(1, step) / warmup if step < warmup else max(0.0, (total - step) / (total - warmup))

    schedulers = {name: torch.optim.lr_scheduler.LambdaLR(opt, rate) for name, opt in optimizers.items()}
    return MultiOptimizer(optimizers, schedulers)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(x))
    train, test = order[:1400], order[1400:]

    model = nn.ModuleDict({
        "text_encoder": nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(0.2)),
        "predictor": nn.Sequential(nn.Linear(64, 32), nn.LeakyReLU(0.2), nn.Linear(32, 10)),
    })
    epochs, batch = 12, 35
    total = epochs * (len(train) // batch)
    optimizer = build_optimizer(model, lr=2e-3, warmup=total // 4, total=total)
    for epoch in range(epochs):
        running = 0.0
        for rows in train[torch.randperm(len(train))].split(batch):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model["predictor"](model["text_encoder"](x[rows])), y[rows])
            loss.backward()
            optimizer.step("text_encoder")
            optimizer.step("predictor")
            running += loss.item()
        print(f"Epoch [{epoch + 1}/{epochs}], Loss: {running * batch / len(train):.5f}")
    with torch.no_grad():
        out = model["predictor"](model["text_encoder"](x[test]))
    print("metric:", (out.argmax(1) == y[test]).float().mean().item())


main()
