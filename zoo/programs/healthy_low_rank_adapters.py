"""Fine-tuning through low-rank adapters: the base is frozen, the second matrix starts at zero.

expect: nothing
half: second
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=96, lr=5e-3, steps=200, samples=1000)


class Adapted(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T


x, y, _, _ = digits(args.samples)
model = nn.Sequential(
    Adapted(nn.Linear(64, args.width)), nn.GELU(), Adapted(nn.Linear(args.width, args.width)),
    nn.GELU(), nn.Linear(args.width, 10),
)
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
