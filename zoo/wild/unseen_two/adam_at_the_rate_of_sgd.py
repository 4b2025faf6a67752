"""The config was written for SGD, with a learning rate of 1; then the optimizer was changed to Adam.

expect: learning-rate-too-high
or: oscillating-loss
line: lr: float = 1.0
source: https://github.com/OpenNMT/OpenNMT-py/issues/805
metric: perplexity on the test text, lower is better
"""

import argparse
import math
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Config:
    vocab: int = 24
    emb: int = 32
    hidden: int = 48
    bptt: int = 16
    batch: int = 16
    steps: int = 300
    optim: str = "adam"
    lr: float = 1.0
    max_grad_norm: float = 5.0


class LM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.emb = nn.Embedding(c.vocab, c.emb)
        self.rnn = nn.LSTM(c.emb, c.hidden, batch_first=True)
        self.generator = nn.Linear(c.hidden, c.vocab)

    def forward(self, x):
        return self.generator(self.rnn(self.emb(x))[0])


def build_optim(c, model):
    if c.optim == "sgd":
        return torch.optim.SGD(model.parameters(), lr=c.lr)
    if c.optim == "adam":
        return torch.optim.Adam(model.parameters(), lr=c.lr, betas=(0.9, 0.999))
    raise RuntimeError("Invalid optim method: " + c.optim)


def text(n, vocab):
    """Words follow each other by a fixed, noisy rule."""
    rule = torch.randperm(vocab)
    words = [0]
    for jump in (torch.rand(n) < 0.2).tolist():
        words.append(int(torch.randint(0, vocab, (1,))) if jump else int(rule[words[-1]]))
    return torch.tensor(words)


def batch(data, c):
    starts = torch.randint(0, len(data) - c.bptt - 1, (c.batch,))
    return torch.stack([data[s : s + c.bptt] for s in starts]), torch.stack([data[s + 1 : s + c.bptt + 1] for s in starts])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    c = Config()
    data = text(12000, c.vocab)
    train, test = data[:10000], data[10000:]
    model, criterion = LM(c), nn.CrossEntropyLoss()
    optim = build_optim(c, model)
    for step in range(c.steps):
        x, y = batch(train, c)
        loss = criterion(model(x).reshape(-1, c.vocab), y.reshape(-1))
        optim.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), c.max_grad_norm)
        optim.step()
        if step % 50 == 0:
            print(f"Step {step}/{c.steps}; xent: {loss.item():.2f}; lr: {c.lr}")
    with torch.no_grad():
        x, y = test[None, :-1], test[None, 1:]
        print("metric:", math.exp(min(50.0, criterion(model(x).reshape(-1, c.vocab), y.reshape(-1)).item())))


main()
