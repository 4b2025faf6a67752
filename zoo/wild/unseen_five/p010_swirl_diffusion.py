"""DDPM on a swirl with an exponential moving average of the weights for sampling: the loss stays far above zero, as it must.

expect: nothing
style: EMA copy, sinusoidal time, cosine schedule of noise, random targets in each step
metric: energy distance of samples and data, lower is better
"""

import argparse
import copy
import math

import torch
import torch.nn as nn

STEPS = 50
s = 0.008
curve = torch.cos((torch.arange(STEPS + 1) / STEPS + s) / (1 + s) * math.pi / 2) ** 2
alpha_bar = (curve / curve[0])[1:].clamp(min=1e-4)
beta = (1 - alpha_bar / torch.cat([torch.ones(1), alpha_bar[:-1]])).clamp(max=0.99)


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.freq = nn.Buffer(2.0 ** torch.arange(6))
        self.net = nn.Sequential(nn.Linear(14, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, x, t):
        angle = (t / STEPS)[:, None] * self.freq
        return self.net(torch.cat([x, angle.sin(), angle.cos()], 1))


def swirl(n):
    r = torch.rand(n).sqrt() * 9 + 1.5
    points = torch.stack([r * r.cos(), r * r.sin()], 1) + 0.2 * torch.randn(n, 2)
    return points / 5


@torch.no_grad()
def sample(model, n):
    x = torch.randn(n, 2)
    for t in reversed(range(STEPS)):
        eps = model(x, torch.full((n,), float(t)))
        x = (x - beta[t] / (1 - alpha_bar[t]).sqrt() * eps) / (1 - beta[t]).sqrt()
        if t:
            x = x + beta[t].sqrt() * torch.randn_like(x)
    return x


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=1500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = Denoiser()
    ema = copy.deepcopy(model).requires_grad_(False)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for i in range(args.iterations):
        x0, noise = swirl(256), torch.randn(256, 2)
        t = torch.randint(0, STEPS, (256,))
        ab = alpha_bar[t][:, None]
        loss = (model(ab.sqrt() * x0 + (1 - ab).sqrt() * noise, t.float()) - noise).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for slow, fast in zip(ema.parameters(), model.parameters()):
                slow.lerp_(fast, 0.01)
        if i % 250 == 0:
            print("iteration", i, "loss", round(loss.item(), 4))
    a, b = sample(ema, 1000), swirl(1000)
    print("metric:", (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item())
