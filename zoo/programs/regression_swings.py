"""A linear regression whose step is just at the edge of what is stable: it swings and never falls.

expect: oscillating-loss
or: learning-rate-too-high
half: second
"""

import torch
from common import arguments
from torch import nn

args = arguments(steps=250, samples=600)
x = torch.randn(args.samples, 8) * torch.tensor([4.0, 1, 1, 1, 0.3, 0.3, 0.1, 0.1])
y = x @ torch.randn(8, 1) + 0.1 * torch.randn(args.samples, 1)
model = nn.Linear(8, 1)
steepest = torch.linalg.eigvalsh(2 * x.T @ x / len(x)).max().item()
optimizer = torch.optim.SGD(model.parameters(), lr=1.999 / steepest)
for step in range(args.steps):
    chosen = torch.randint(len(x), (256,))
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x[chosen]), y[chosen])
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
