"""Attention over the words of a question is a softmax over a dimension of size one: every weight is 1, and the scorer learns nothing.

expect: softmax-over-one
or: no-gradient, samples-mixed
line: weights = F.softmax(scores, dim=2)
source: https://github.com/DEEP-PolyU/KEQA_WSDM19/issues/2
metric: accuracy of the relation, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class EmbedVector(nn.Module):
    def __init__(self, words=100, relations=12, dim=24):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.gru = nn.GRU(dim, 16, batch_first=True, bidirectional=True)
        self.attn = nn.Sequential(nn.Linear(dim + 32, 24), nn.Tanh(), nn.Linear(24, 1))
        self.hidden2tag = nn.Linear(dim, relations)

    def forward(self, text):
        x = self.embed(text)
        outputs, _ = self.gru(x)
        scores = self.attn(torch.cat((x, outputs), 2))
        weights = F.softmax(scores, dim=2)
        return self.hidden2tag((weights * x).mean(1) * 4)


def questions(n, length=30):
    """Any word is a relation word (of 12) somewhere; only the one after the marker 99 counts."""
    text = torch.randint(0, 98, (n, length))
    at = torch.randint(0, length - 1, (n,))
    row = torch.arange(n)
    text[row, at] = 99
    return text, text[row, at + 1] % 12


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=15)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = questions(4000)
    x_test, y_test = questions(800)
    model = EmbedVector()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.006)
    for epoch in range(args.epochs):
        n_loss = 0.0
        for idx in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            n_loss += loss.item()
        print("epoch %2d loss %.4f" % (epoch, n_loss / (len(x) / 64)))
    with torch.no_grad():
        print("metric:", (model(x_test).argmax(1) == y_test).float().mean().item())


if __name__ == "__main__":
    main()
