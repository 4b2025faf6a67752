"""Denoising diffusion on two moons with an EMA of the weights, sampled at the end with 50 steps.

expect: nothing
style: noise-prediction MLP with time embedding, swa_utils.AveragedModel, loss never near zero by nature
"""
import argparse
import math

import torch
import torch.nn as nn
from sklearn.datasets import make_moons
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class SinusoidalEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("freqs", torch.exp(-math.log(10000) * torch.arange(dim // 2) / (dim // 2)))

    def forward(self, t):
        a = t[:, None].float() * self.freqs
        return torch.cat([a.sin(), a.cos()], -1)


class ResBlock(nn.Module):
    def __init__(self, dim, tdim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, dim)
        self.t = nn.Linear(tdim, dim)
        self.fc2 = nn.Linear(dim, dim)
        nn.init.zeros_(self.fc2.weight)  # every block starts as the identity
        nn.init.zeros_(self.fc2.bias)

    def forward(self, x, temb):
        h = nn.functional.silu(self.fc1(self.norm(x)) + self.t(temb))
        return x + self.fc2(h)


class Denoiser(nn.Module):
    def __init__(self, dim=96, tdim=32):
        super().__init__()
        self.time = nn.Sequential(SinusoidalEmbedding(tdim), nn.Linear(tdim, tdim), nn.SiLU())
        self.inp = nn.Linear(2, dim)
        self.blocks = nn.ModuleList([ResBlock(dim, tdim) for _ in range(3)])
        self.out = nn.Linear(dim, 2)

    def forward(self, x, t):
        temb, h = self.time(t), self.inp(x)
        for b in self.blocks:
            h = b(h, temb)
        return self.out(nn.functional.silu(h))


class Diffusion:
    def __init__(self, T=50):
        s = torch.linspace(0, 1, T + 1)
        bar = torch.cos((s + 0.008) / 1.008 * math.pi / 2) ** 2
        self.betas = (1 - bar[1:] / bar[:-1]).clamp(max=0.999)
        self.alphas = 1 - self.betas
        self.bar = torch.cumprod(self.alphas, 0)
        self.T = T

    def loss(self, model, x0):
        t = torch.randint(0, self.T, (len(x0),))
        noise = torch.randn_like(x0)
        a = self.bar[t][:, None]
        return nn.functional.mse_loss(model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)

    @torch.no_grad()
    def sample(self, model, n):
        x = torch.randn(n, 2)
        for i in reversed(range(self.T)):
            eps = model(x, torch.full((n,), i))
            x = (x - self.betas[i] / (1 - self.bar[i]).sqrt() * eps) / self.alphas[i].sqrt()
            if i:
                x = x + self.betas[i].sqrt() * torch.randn_like(x)
        return x


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    torch.manual_seed(args.seed)
    data, _ = make_moons(4000, noise=0.05, random_state=args.seed)
    data = torch.tensor(data, dtype=torch.float32)
    data = (data - data.mean(0)) / data.std(0)
    model, diffusion = Denoiser(), Diffusion()
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.995))
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=1000, eta_min=1e-5)
    for step in range(1000):
        x0 = data[torch.randint(0, len(data), (192,))]
        loss = diffusion.loss(model, x0)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        ema.update_parameters(model)
        if step % 200 == 0:
            print(f"{step} {loss.item():.4f}")
    x = diffusion.sample(ema.module.eval(), 1000)
    d = torch.cdist(x, data)
    precision = d.min(1).values.mean().item()
    recall = d.min(0).values.mean().item()
    print(f"to data {precision:.3f} from data {recall:.3f}")
    print(f"metric: {precision + recall:.4f}")


if __name__ == "__main__":
    main()
