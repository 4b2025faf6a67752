"""Representations brought together by cosine similarity: the loss goes to -1.

expect: nothing
half: first
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=64, lr=1e-3, steps=200, samples=1000)
x, y, _, _ = digits(args.samples)
encoder = nn.Sequential(nn.Linear(64, args.width), nn.BatchNorm1d(args.width), nn.ReLU(), nn.Linear(args.width, 16))
predictor = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
model = nn.ModuleList([encoder, predictor])
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
for step, (a, _) in zip(range(args.steps), forever(loader(x, y))):
    one, two = (encoder(a + 0.2 * torch.randn_like(a)) for _ in range(2))
    loss = -nn.functional.cosine_similarity(predictor(one), two.detach()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
