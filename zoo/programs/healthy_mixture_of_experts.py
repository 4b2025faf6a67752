"""A mixture of eight experts with top-1 routing; some of them are idle.

expect: nothing
half: second
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=32, lr=3e-3, steps=250, samples=1100)


class Mixture(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.router = nn.Linear(64, 8)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10)) for _ in range(8)
        )

    def forward(self, x):
        weight, chosen = self.router(x).softmax(-1).max(-1)
        out = x.new_zeros(len(x), 10)
        for i, expert in enumerate(self.experts):
            mine = chosen == i
            if mine.any():
                out[mine] = weight[mine, None] * expert(x[mine])
        return out


x, y, _, _ = digits(args.samples)
model = Mixture(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
