"""Keys and values of a memory module are plain tensors, not parameters: they stay at their random start.

expect: unregistered-parameter
or: unregistered-layers
line: self.values = torch.randn(L, channel)
source: https://github.com/SimonThomine/RememberingNormality/issues/7
metric: reconstruction error of normal data, lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class NormalityRecall(nn.Module):
    def __init__(self, channel, L=24):
        super().__init__()
        self.channel = channel
        self.query = nn.Linear(channel, channel)
        self.keys = torch.randn(L, channel)
        self.values = torch.randn(L, channel)

    def forward(self, x):
        attention = F.softmax(self.query(x) @ self.keys.t() / self.channel**0.5, dim=-1)
        return attention @ self.values


class Recaller(nn.Module):
    def __init__(self, channel=24):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(channel, 24), nn.ReLU(), nn.Linear(24, channel))
        self.recall = NormalityRecall(channel)

    def forward(self, x):
        return self.recall(self.encode(x))


def normal_features(n, prototypes):
    return prototypes[torch.randint(len(prototypes), (n,))] + 0.1 * torch.randn(n, prototypes.size(1))


class Trainer:
    def __init__(self, args):
        torch.manual_seed(args.seed)
        self.prototypes = 1.5 * torch.randn(12, 24)
        self.model = Recaller()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=args.lr)
        self.steps = args.steps

    def train(self):
        for step in range(self.steps):
            features = normal_features(64, self.prototypes)
            loss = F.mse_loss(self.model(features), features)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 100 == 0:
                print(f"step {step} loss {loss.item():.4f}")

    @torch.no_grad()
    def val(self):
        features = normal_features(500, self.prototypes)
        return F.mse_loss(self.model(features), features).item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--steps", type=int, default=800)
    trainer = Trainer(parser.parse_args())
    trainer.train()
    print("metric:", trainer.val())
