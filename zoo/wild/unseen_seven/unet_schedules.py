"""Warmup and then a cosine: the cosine is given the length of the warmup for its period, and the rate swings up and down to the end.

expect: schedule-swings
or: oscillating-loss, learning-rate-too-high
line: cosine = CosineAnnealingLR(optimizer, T_max=warmup_steps)
source: https://github.com/lucidrains/imagen-pytorch/issues/71
metric: test error, lower is better
"""

import argparse

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR


class Denoise(nn.Module):
    """A small U on rows of 32 values."""

    def __init__(self, c=16):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv1d(1, c, 5, padding=2), nn.SiLU())
        self.down2 = nn.Sequential(nn.Conv1d(c, 2 * c, 5, stride=2, padding=2), nn.SiLU())
        self.up = nn.Sequential(nn.ConvTranspose1d(2 * c, c, 4, stride=2, padding=1), nn.SiLU())
        self.out = nn.Conv1d(2 * c, 1, 5, padding=2)

    def forward(self, x):
        a = self.down1(x)
        return self.out(torch.cat([a, self.up(self.down2(a))], 1))


class Trainer:
    def __init__(self, unet, lr, warmup_steps, cosine_decay_max_steps):
        self.unet = unet
        optimizer = torch.optim.SGD(unet.parameters(), lr=lr, momentum=0.9)
        warmup = LinearLR(optimizer, start_factor=0.01, total_iters=warmup_steps)
        cosine = CosineAnnealingLR(optimizer, T_max=warmup_steps)
        self.optimizer = optimizer
        self.scheduler = SequentialLR(optimizer, [warmup, cosine], milestones=[warmup_steps])

    def update(self, noisy, clean):
        loss = nn.functional.mse_loss(self.unet(noisy), clean)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        return loss.item()


def rows(n):
    t = torch.linspace(0, 1, 32)
    freq, phase = 1 + 3 * torch.rand(n, 1), 6.28 * torch.rand(n, 1)
    clean = torch.sin(6.28 * freq * t + phase).unsqueeze(1)
    return clean + 0.8 * torch.randn_like(clean), clean


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=850)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    trainer = Trainer(Denoise(), lr=0.25, warmup_steps=50, cosine_decay_max_steps=args.steps - 50)
    noisy_test, clean_test = rows(1000)
    for step in range(args.steps):
        loss = trainer.update(*rows(8))
        if step % 100 == 0:
            print(
                f"unet 1, step {step}: loss {loss:.4f} lr {trainer.scheduler.get_last_lr()[0]:.2e}"
            )
    with torch.no_grad():
        print("metric:", nn.functional.mse_loss(trainer.unet(noisy_test), clean_test).item())
