"""Mixed precision on the CPU: forward and loss under autocast in bfloat16, weights in float32.

expect: nothing
style: trainer class, autocast, cosine schedule with warm-up, gradient clipping that seldom bites
metric: test accuracy, higher is better
"""

import argparse
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    epochs: int = 7
    batch: int = 48
    lr: float = 4e-3
    warmup: int = 20


class Trainer:
    def __init__(self, model, train, test, config):
        self.model, self.config = model, config
        self.train_loader = DataLoader(train, batch_size=config.batch, shuffle=True, drop_last=True)
        self.test_loader = DataLoader(test, batch_size=256)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, weight_decay=0.01)
        total = config.epochs * len(self.train_loader)

        def rate(step):
            if step < config.warmup:
                return (step + 1) / config.warmup
            return 0.5 * (1 + math.cos(math.pi * (step - config.warmup) / (total - config.warmup)))

        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, rate)

    def fit(self):
        for epoch in range(self.config.epochs):
            self.model.train()
            for x, y in self.train_loader:
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = F.cross_entropy(self.model(x), y)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
                self.optimizer.step()
                self.scheduler.step()
            print(f"epoch {epoch}: loss {loss.item():.4f}, test {self.evaluate():.4f}")

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        right = 0
        for x, y in self.test_loader:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                right += (self.model(x).argmax(1) == y).sum().item()
        return right / len(self.test_loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    d = load_digits()
    x, y = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 8 - 1, torch.tensor(d.target)
    p = torch.randperm(len(x))
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.GELU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.GroupNorm(4, 32), nn.GELU(),
        nn.Flatten(), nn.Linear(512, 10),
    )
    trainer = Trainer(model, TensorDataset(x[p[:1350]], y[p[:1350]]), TensorDataset(x[p[1350:]], y[p[1350:]]), Config())
    trainer.fit()
    print("metric:", trainer.evaluate())


if __name__ == "__main__":
    main()
