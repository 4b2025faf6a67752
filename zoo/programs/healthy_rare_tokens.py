"""A large vocabulary of which most tokens hardly ever come.

expect: nothing
half: second
"""

import torch
from common import arguments, forever, loader, sentences
from torch import nn

args = arguments(width=32, lr=3e-3, steps=300, samples=1200)


class Classifier(nn.Module):
    def __init__(self, width):
        super().__init__()
        width = max(8, width // 4 * 4)
        self.embed = nn.Embedding(5000, width)
        self.position = nn.Parameter(torch.randn(12, width) * 0.3)
        self.block = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.out = nn.Linear(width, 2)

    def forward(self, tokens):
        return self.out(self.block(self.embed(tokens) + self.position).mean(1))


x, y = sentences(args.samples)
model = Classifier(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 60 == 0:
        print(step, loss.item())
