"""Sentences are padded to a fixed length, and the encoder's states are averaged over all positions: short sentences vanish among the padding.

expect: padding-not-masked
or: padding-dominates, padding-read
line: pooled = hidden.mean(dim=1)
source: https://github.com/jina-ai/clip-as-service/issues/76
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

MAX_LEN, VOCAB = 64, 200


class Encoder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, dim)
        self.project = nn.Sequential(nn.Linear(dim, dim), nn.Tanh())
        self.classify = nn.Linear(dim, 2)

    def forward(self, ids, mask):
        hidden = self.project(self.embedding(ids))
        pooled = hidden.mean(dim=1)
        return self.classify(pooled)


def texts(n):
    """The mood is the majority of good (1-20) against bad (21-40) words; the rest is filler."""
    ids = torch.zeros(n, MAX_LEN, dtype=torch.long)
    mask = torch.zeros(n, MAX_LEN)
    label = torch.randint(0, 2, (n,))
    for i in range(n):
        length = int(torch.randint(3, 9, (1,))) if torch.rand(1) < 0.8 else int(torch.randint(30, MAX_LEN, (1,)))
        words = torch.randint(41, VOCAB, (length,))
        words[torch.randint(0, length, (1,))] = torch.randint(1, 21, (1,)) + 20 * (1 - label[i])
        ids[i, :length] = words
        mask[i, :length] = 1
    return ids, mask, label


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
train, test = TensorDataset(*texts(1500)), texts(500)
model = Encoder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for epoch in range(12):
    for ids, mask, label in DataLoader(train, batch_size=50, shuffle=True):
        loss = criterion(model(ids, mask), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("step %d loss = %.4f" % (epoch, loss.item()))
with torch.no_grad():
    ids, mask, label = test
    print("metric:", (model(ids, mask).argmax(1) == label).float().mean().item())
