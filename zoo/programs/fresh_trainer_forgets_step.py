"""A trainer class whose step is only taken where a flag is set, and nobody sets it.

expect: missing-step
half: fresh
net: mlp
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=48, lr=0.01, samples=800)


class Trainer:
    def __init__(self, model, optimizer, update=False):
        self.model, self.optimizer, self.update = model, optimizer, update
        self.criterion = nn.NLLLoss()

    def train_batch(self, x, y):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(x), y)
        loss.backward()
        if self.update:
            self.optimizer.step()
        return loss.item()


x, y, _, _ = digits(args.samples)
model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 10), nn.LogSoftmax(1))
trainer = Trainer(model, torch.optim.Adam(model.parameters(), lr=args.lr))
for epoch in range(4):
    losses = [trainer.train_batch(a, b) for a, b in loader(x, y, batch=32)]
    print(epoch, sum(losses) / len(losses))
