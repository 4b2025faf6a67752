"""A pooler that comes with the network and is not used.

expect: nothing
half: first
"""

import torch
from common import arguments, forever, loader, sentences
from torch import nn

args = arguments(width=32, lr=3e-3, steps=250, samples=900)


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        width = max(8, width // 4 * 4)
        self.embed = nn.Embedding(20, width)
        self.position = nn.Parameter(torch.randn(12, width) * 0.2)
        self.block = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.pooler = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, 2)

    def forward(self, tokens, pool=False):
        x = self.block(self.embed(tokens) + self.position)
        return self.head(self.pooler(x[:, 0]) if pool else x.mean(1))


x, y = sentences(args.samples)
model = Encoder(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
