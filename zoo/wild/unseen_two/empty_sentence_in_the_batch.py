"""Padded positions get -inf before the softmax; a document with an empty sentence has a row of nothing but -inf.

expect: non-finite
line: scores = scores.masked_fill(mask == 0, float("-inf"))
source: https://github.com/jadore801120/attention-is-all-you-need-pytorch/issues/5
metric: test accuracy, higher is better
"""

import argparse
import random

import torch
import torch.nn as nn


class WordAttention(nn.Module):
    """Embeds the words of each sentence and takes their weighted mean."""

    def __init__(self, vocab, dim):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim, padding_idx=0)
        self.query = nn.Linear(dim, 1)

    def forward(self, words):
        mask = (words != 0).long()
        x = torch.tanh(self.embedding(words))
        scores = self.query(x).squeeze(-1)
        scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return (weights.unsqueeze(-1) * x).sum(-2)


class DocumentNet(nn.Module):
    def __init__(self, vocab=80, dim=24):
        super().__init__()
        self.words = WordAttention(vocab, dim)
        self.sentences = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, 3)

    def forward(self, document):
        _, h = self.sentences(self.words(document))
        return self.out(h[-1])


def documents(n, p_empty=0.004):
    """Six sentences of up to eight words; now and then the splitter returns an empty one."""
    label = torch.randint(0, 3, (n,))
    words = torch.zeros(n, 6, 8, dtype=torch.long)
    for i in range(n):
        for s in range(6):
            if random.random() < p_empty:
                continue
            length = random.randint(2, 8)
            words[i, s, :length] = torch.randint(20, 80, (length,))
            if random.random() < 0.6:
                words[i, s, random.randrange(length)] = 1 + 6 * int(label[i]) + random.randrange(6)
    return words, label


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
random.seed(seed)
torch.manual_seed(seed)
x, y = documents(2000)
model = DocumentNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    model.train()
    total = 0.0
    for rows in torch.randperm(2000).split(40):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item()
    print(f"  - (Training)   loss: {total / 50:8.5f}")
model.eval()
x, y = documents(400, p_empty=0.0)
with torch.no_grad():
    print("metric:", (model(x).argmax(1) == y).float().mean().item())
