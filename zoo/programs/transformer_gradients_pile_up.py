"""A small transformer with Adam; gradients are never cleared.

expect: missing-zero-grad
onset: 1-4
half: first
"""

import torch
from common import arguments, forever, loader, sentences
from torch import nn

args = arguments(width=32, lr=1e-3, steps=150, samples=800)
width = max(8, args.width // 4 * 4)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, width)
        self.block = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.out = nn.Linear(width, 2)

    def forward(self, tokens):
        return self.out(self.block(self.embed(tokens)).mean(1))


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step, (x, y) in zip(range(args.steps), forever(loader(*sentences(args.samples)))):
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, loss.item())
