"""A mixture of two softmaxes, as in pointer networks: the logarithm is taken of the sum, and as soon as a probability is rounded to zero there are no numbers left.

expect: non-finite
line: mixed = p * F.softmax(x1, dim=1) + (1 - p) * F.softmax(x2, dim=1)
source: https://github.com/pytorch/pytorch/issues/1620
metric: share of words named rightly, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class TwoSources(nn.Module):
    """One source of words is the vocabulary, the other what is seen in the line."""

    def __init__(self, features, words, dim=32):
        super().__init__()
        self.hidden = nn.Linear(features, dim)
        self.generate, self.copy, self.gate = nn.Linear(dim, words), nn.Linear(dim, words), nn.Linear(dim, 1)

    def forward(self, x):
        h = torch.relu(self.hidden(x))
        return torch.sigmoid(self.gate(h)), self.generate(h), self.copy(h)

    def log_prob(self, x):
        p, x1, x2 = self(x)
        mixed = p * F.softmax(x1, dim=1) + (1 - p) * F.softmax(x2, dim=1)
        return torch.log(mixed)


def lines(n, proj):
    """Counts of twenty strokes tell the word (of 12); strokes come in dozens."""
    word = torch.randint(12, (n,))
    return torch.poisson(40 * torch.exp(proj[word])), word


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    proj = torch.randn(12, 20)
    model = TwoSources(20, 12)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(args.steps):
        x, word = lines(64, proj)
        loss = F.nll_loss(model.log_prob(x), word)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print("step %d loss %.4f" % (step, loss.item()))
    with torch.no_grad():
        x, word = lines(1000, proj)
        print("metric:", (model.log_prob(x).argmax(1) == word).float().mean().item())


if __name__ == "__main__":
    main()
