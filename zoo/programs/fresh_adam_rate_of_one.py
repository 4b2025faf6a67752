"""A transformer encoder trained by Adam with a rate of one.

expect: learning-rate-too-high
half: fresh
net: transformer
"""

import torch
from common import arguments, loader, sentences
from torch import nn

args = arguments(width=32, samples=800)
width = max(8, args.width // 4 * 4)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, width)
        self.pos = nn.Embedding(12, width)
        block = nn.TransformerEncoderLayer(width, 2, 64, batch_first=True)
        self.enc = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        self.cls = nn.Linear(width, 2)

    def forward(self, ids):
        return self.cls(self.enc(self.emb(ids) + self.pos(torch.arange(ids.shape[1])))[:, 0])


def train(model, data, optimizer):
    for ids, label in data:
        loss = nn.functional.cross_entropy(model(ids), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1.0)
data = loader(*sentences(args.samples), batch=32)
for epoch in range(5):
    print(epoch, train(model, data, optimizer))
