"""An autoencoder of digits; gradients are never cleared.

expect: missing-zero-grad
onset: 1-4
half: second
"""

import torch
import torch.nn.functional as F
from common import arguments, digits, loader
from torch import nn

args = arguments(width=64, lr=0.02, samples=800)
x, _, _, _ = digits(args.samples)
model = nn.Sequential(
    nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 12), nn.ReLU(),
    nn.Linear(12, args.width), nn.ReLU(), nn.Linear(args.width, 64),
)
opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
for epoch in range(5):
    total = 0.0
    for (batch,) in loader(x):
        loss = F.mse_loss(model(batch), batch)
        loss.backward()
        opt.step()
        total += loss.item()
    print("epoch", epoch, total)
