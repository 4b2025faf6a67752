"""Weight decay for weights and none for biases and norms.

expect: nothing
half: first
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=64, lr=2e-3, steps=200, samples=1000)
x, y, _, _ = digits(args.samples)

model = nn.Sequential(nn.Linear(64, args.width), nn.LayerNorm(args.width), nn.GELU(), nn.Linear(args.width, 10))
decayed = [p for p in model.parameters() if p.ndim > 1]
others = [p for p in model.parameters() if p.ndim <= 1]
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=args.lr)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
