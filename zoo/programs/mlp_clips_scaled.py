"""Clipping before unscaling, in a perceptron under autocast.

expect: clipped-before-unscale
half: first
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=64, lr=0.05, steps=120, samples=900)
x, y, _, _ = digits(args.samples)

model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(a), b)
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    if step % 30 == 0:
        print(step, loss.item())
