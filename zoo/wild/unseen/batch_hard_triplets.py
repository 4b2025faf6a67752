"""Metric learning with batch-hard triplets and unit-length embeddings; tested by nearest neighbour on people never seen in training.

expect: nothing
style: the hardest triplet of each batch is picked, so the loss hovers around the margin for long and falls late; batches are four samples of sixteen people each, never the whole set
"""
import argparse

import torch
import torch.nn.functional as F
from torch import nn


class People:
    """Gait vectors: a personal part, mixed with large changes of clothing and pace."""

    def __init__(self, n, mix):
        self.identity = torch.randn(n, 8)
        self.mix = mix

    def draw(self, who):
        day = 1.2 * torch.randn(len(who), 8)
        return torch.cat([self.identity[who], day], 1) @ self.mix + 0.25 * torch.randn(len(who), 32)


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 16))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


def batch_hard(e, who, margin=0.3):
    d = (2 - 2 * (e @ e.T)).clamp(min=1e-8).sqrt()
    same = who[:, None] == who[None]
    hardest_same = d.masked_fill(~same, -1.0).max(1).values
    hardest_other = d.masked_fill(same, 9.0).min(1).values
    return F.relu(hardest_same - hardest_other + margin).mean()


def rank1(model, people, n):
    who = torch.arange(n)
    with torch.no_grad():
        gallery, query = model(people.draw(who)), model(people.draw(who))
    return ((query @ gallery.T).argmax(1) == who).float().mean().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    torch.manual_seed(p.parse_args().seed)
    mix = torch.randn(16, 32) / 4
    train, unseen = People(150, mix), People(100, mix)
    model = Embedder()
    print(f"untrained: {rank1(model, unseen, 100):.3f}")
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(1, 401):
        who = torch.randperm(150)[:16].repeat_interleave(4)
        loss = batch_hard(model(train.draw(who)), who)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.3f}")
    print(f"metric: {rank1(model, unseen, 100):.4f}")


if __name__ == "__main__":
    main()
