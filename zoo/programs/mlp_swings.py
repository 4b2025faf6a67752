"""Full-batch gradient descent just beyond the edge of stability of a network with a fixed first layer.

expect: oscillating-loss
or: learning-rate-too-high, not-learning
half: first
"""

import torch
from common import arguments, curve
from torch import nn

args = arguments(width=32, steps=200, samples=500)
x, y = curve(args.samples)
features = torch.tanh(x @ torch.randn(6, args.width))
features = torch.cat([features * 2, torch.ones(len(x), 1) * 3], 1)
model = nn.Linear(args.width + 1, 1, bias=False)
steepest = torch.linalg.eigvalsh(2 * features.T @ features / len(x)).max().item()
optimizer = torch.optim.SGD(model.parameters(), lr=1.9995 / steepest)
with torch.no_grad():
    model.weight[0, -1] += 2.0
for step in range(args.steps):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(features), y)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
