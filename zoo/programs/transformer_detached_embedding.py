"""A small transformer; a `.detach()` was left in the forward, so the embedding never learns.

expect: no-gradient
site: embed
half: second
"""

import torch
from common import arguments, forever, loader, sentences
from torch import nn

args = arguments(width=32, lr=1e-3, steps=150, samples=800)


class Reader(nn.Module):
    def __init__(self, width):
        super().__init__()
        width = max(8, width // 4 * 4)
        self.embed = nn.Embedding(20, width)
        self.position = nn.Parameter(torch.randn(12, width) * 0.1)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens):
        x = self.embed(tokens).detach()
        return self.head(self.encoder(x + self.position).mean(1))


model = Reader(args.width)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step, (x, y) in zip(range(args.steps), forever(loader(*sentences(args.samples)))):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, loss.item())
