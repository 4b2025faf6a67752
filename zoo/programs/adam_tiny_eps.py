"""Adam with eps=1e-16 and a short memory, on a network whose gradients come and go.

expect: adam-instability
or: learning-rate-too-high, oscillating-loss
half: second
net: transformer
"""

import torch
from common import arguments, forever, loader, sentences
from torch import nn

args = arguments(width=32, lr=0.02, steps=260, samples=900)


class Bag(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(4000, width)
        self.mix = nn.Linear(width, width)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens):
        return self.head(torch.relu(self.mix(self.embed(tokens).sum(1))))


x, y = sentences(args.samples)
x = x * 97 % 4000
model = Bag(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, betas=(0.9, 0.5), eps=1e-16)
criterion = nn.CrossEntropyLoss()
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
