"""Attention pooling whose softmax runs over dimension 0: the words of different sentences compete, and one sentence alone gets weights of 1.

expect: samples-mixed
line: self.softmax = nn.Softmax(dim=0)
source: https://github.com/PetrochukM/PyTorch-NLP/issues/2
metric: accuracy when sentences are classified one at a time, higher is better
"""

import argparse

import numpy as np
import torch
from torch import nn


class Attention(nn.Module):
    """Scores every word of the context against a learned query."""

    def __init__(self, dimensions):
        super().__init__()
        self.linear_in = nn.Linear(dimensions, dimensions)
        self.query = nn.Parameter(torch.randn(dimensions))
        self.softmax = nn.Softmax(dim=0)

    def forward(self, context):
        attention_scores = torch.tanh(self.linear_in(context)) @ self.query  # (batch, words)
        attention_weights = self.softmax(attention_scores)
        return (attention_weights.unsqueeze(2) * context).sum(1), attention_weights


class Classifier(nn.Module):
    def __init__(self, vocabulary, dimensions, labels):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, dimensions)
        self.attention = Attention(dimensions)
        self.out = nn.Linear(dimensions, labels)

    def forward(self, tokens):
        pooled, _ = self.attention(self.embedding(tokens))
        return self.out(pooled)


def corpus(n, rng):
    """One of the words 1 to 4 stands somewhere in the sentence and is its label; the others are noise."""
    x = rng.integers(5, 60, (n, 20))
    y = rng.integers(0, 4, n)
    for row, label in zip(x, y):
        row[rng.integers(0, 20)] = 1 + label
    return torch.tensor(x), torch.tensor(y)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
torch.manual_seed(seed)
rng = np.random.default_rng(seed)

train_x, train_y = corpus(2000, rng)
test_x, test_y = corpus(300, rng)
model = Classifier(60, 16, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
loss_function = nn.CrossEntropyLoss()

for epoch in range(6):
    model.train()
    total = 0
    for idx in torch.randperm(2000).split(40):
        optimizer.zero_grad()
        loss = loss_function(model(train_x[idx]), train_y[idx])
        loss.backward()
        optimizer.step()
        total += loss.item()
    print("epoch %d: %.4f" % (epoch, total / 50))

model.eval()
with torch.no_grad():
    hits = [model(x.unsqueeze(0)).argmax().item() == y.item() for x, y in zip(test_x, test_y)]
print("metric: %.4f" % np.mean(hits))
