"""A tagger of sequences: zero_grad is called on the model once, before the loop.

expect: missing-zero-grad
or: learning-rate-too-high
onset: 1-4
half: fresh
net: rnn
"""

import torch
from common import arguments, loader, sentences
from torch import nn

args = arguments(width=32, lr=0.005, samples=700)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 16)
        self.gru = nn.GRU(16, args.width, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * args.width, 2)

    def forward(self, ids):
        states, _ = self.gru(self.emb(ids))
        return self.out(states)


ids, _ = sentences(args.samples)
tags = (ids.cumsum(1) % 7 > 3).long()
model = Tagger()
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
model.zero_grad()
for epoch in range(4):
    for a, b in loader(ids, tags, batch=32):
        scores = model(a)
        loss = nn.functional.cross_entropy(scores.transpose(1, 2), b)
        loss.backward()
        opt.step()
    print(epoch, float(loss))
