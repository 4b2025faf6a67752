"""A break that was left in from debugging ends every epoch after four batches of an ordered loader: most of the data is never seen.

expect: data-never-seen
or: repeated-batch
line: if step >= 4:
source: https://github.com/caoyu-noob/D3/issues/3
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class NLIModel(nn.Module):
    """Whether the hypothesis agrees with the premise, contradicts it, or neither."""

    def __init__(self, vocab=50, dim=24):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.mlp = nn.Sequential(nn.Linear(4 * dim, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, premise, hypothesis):
        p, h = self.embed(premise), self.embed(hypothesis)
        return self.mlp(torch.cat([p, h, (p - h).abs(), p * h], 1))


def pairs(n, meaning):
    premise, hypothesis = torch.randint(0, 50, (2, n, 4))
    agree = nn.functional.cosine_similarity(meaning[premise].mean(1), meaning[hypothesis].mean(1))
    return premise, hypothesis, (agree > 0.35).long() + 2 * (agree < -0.35).long()


def train(args):
    torch.manual_seed(args.seed)
    meaning = torch.randn(50, 3)
    dataset = TensorDataset(*pairs(6000, meaning))
    model = NLIModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    loader = DataLoader(dataset, batch_size=args.batch_size)
    steps = 0
    for epoch in range(args.epochs):
        model.train()
        for step, (premise, hypothesis, label) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(premise, hypothesis), label)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
            if step >= 4:
                break
        if epoch % 6 == 0:
            print("epoch %d, step %d, loss %.4f" % (epoch, steps, loss.item()))
    model.eval()
    with torch.no_grad():
        premise, hypothesis, label = pairs(1000, meaning)
        return (model(premise, hypothesis).argmax(1) == label).float().mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--batch_size", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=30)
    print("metric:", train(parser.parse_args()))
