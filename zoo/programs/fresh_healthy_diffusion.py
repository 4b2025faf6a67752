"""Predicting the noise that was added to points on a ring.

expect: nothing
half: fresh
net: mlp
"""

import torch
from common import arguments
from torch import nn

args = arguments(width=96, lr=2e-3, steps=300)


class Denoiser(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.time = nn.Embedding(50, width)
        self.enter = nn.Linear(2, width)
        self.body = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.leave = nn.Linear(width, 2)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def forward(self, x, t):
        h = self.enter(x) + self.time(t)
        for layer in self.body:
            h = h + nn.functional.silu(layer(nn.functional.silu(h)))
        return self.leave(h)


keep = torch.cumprod(1 - torch.linspace(1e-3, 0.15, 50), 0)
model = Denoiser(args.width)
average = torch.optim.swa_utils.AveragedModel(model)
opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
for step in range(args.steps):
    angle = 6.28 * torch.rand(128)
    x = torch.stack([angle.cos(), angle.sin()], 1)
    t = torch.randint(50, (128,))
    noise = torch.randn_like(x)
    noisy = keep[t, None].sqrt() * x + (1 - keep[t, None]).sqrt() * noise
    loss = ((model(noisy, t) - noise) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    average.update_parameters(model)
    if step % 50 == 0:
        print(step, loss.item())
