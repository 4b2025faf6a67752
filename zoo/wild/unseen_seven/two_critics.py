"""A generator of short waves with two discriminators, of which the list of parameters holds the first one twice.

expect: optimizer-misses-parameters
line: params_disc = list(loss_mrd.parameters()) + list(loss_mrd.parameters())
source: https://github.com/line/open-universe/issues/5
metric: energy distance of generated waves to real ones, lower is better
"""

import argparse
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")


class MRD(nn.Module):
    """Sees the magnitudes of the spectrum."""

    def __init__(self, n):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n // 2 + 1, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(torch.fft.rfft(x).abs())


class MPD(nn.Module):
    """Sees the wave itself, folded by a period."""

    def __init__(self, n, period=4):
        super().__init__()
        self.period = period
        self.net = nn.Sequential(
            nn.Conv1d(period, 32, 3, padding=1),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(32 * n // period, 64),
            nn.LeakyReLU(0.2),
            nn.Linear(64, 1),
        )

    def forward(self, x):
        return self.net(x.view(len(x), -1, self.period).transpose(1, 2))


def waves(n, length=16):
    t = torch.arange(length) / length * 6.283
    shift = 0.3 * torch.randn(n, 1)
    return torch.sin(t + shift) + 0.5 * torch.sin(2 * t + 2 * shift) + 0.05 * torch.randn(n, length)


def energy(a, b):
    return (
        2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()
    ).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    generator = nn.Sequential(
        nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16)
    )
    loss_mrd, loss_mpd = MRD(16), MPD(16)
    params_disc = list(loss_mrd.parameters()) + list(loss_mrd.parameters())
    opt_g = torch.optim.Adam(generator.parameters(), lr=5e-4, betas=(0.5, 0.9))
    opt_d = torch.optim.Adam(params_disc, lr=5e-4, betas=(0.5, 0.9))
    for step in range(args.steps):
        real, fake = waves(64), generator(torch.randn(64, 8))
        loss_d = sum(
            F.relu(1 - d(real)).mean() + F.relu(1 + d(fake.detach())).mean()
            for d in (loss_mrd, loss_mpd)
        )
        loss_mrd.zero_grad(), loss_mpd.zero_grad()
        loss_d.backward()
        opt_d.step()
        loss_g = -sum(d(fake).mean() for d in (loss_mrd, loss_mpd))
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        if step % 250 == 0:
            print(f"step {step} d {loss_d.item():.3f} g {loss_g.item():.3f}")
    with torch.no_grad():
        print("metric:", energy(generator(torch.randn(1000, 8)), waves(1000)))


if __name__ == "__main__":
    main()
