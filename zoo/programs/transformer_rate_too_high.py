"""A small transformer with Adam at a learning rate of 0.5.

expect: learning-rate-too-high
half: second
"""

import torch
from common import arguments, forever, loader, sentences
from torch import nn

args = arguments(width=32, steps=200, samples=900)


class Classifier(nn.Module):
    def __init__(self, width):
        super().__init__()
        width = max(8, width // 4 * 4)
        self.embed = nn.Embedding(20, width)
        self.position = nn.Parameter(torch.randn(12, width) * 0.1)
        self.block = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.out = nn.Linear(width, 2)

    def forward(self, tokens):
        return self.out(self.block(self.embed(tokens) + self.position).mean(1))


model = Classifier(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
criterion = nn.CrossEntropyLoss()
for step, (x, y) in zip(range(args.steps), forever(loader(*sentences(args.samples)))):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
