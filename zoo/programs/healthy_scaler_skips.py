"""A loss scaler that starts too high: the first steps are skipped, as they should be.

expect: nothing
half: second
"""

import torch
import torch.nn.functional as F
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=64, lr=2e-3, steps=200, samples=1000)
x, y, _, _ = digits(args.samples)
model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.cross_entropy(model(a), b)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    scaler.step(optimizer)
    scaler.update()
    if step % 40 == 0:
        print(step, loss.item(), scaler.get_scale())
