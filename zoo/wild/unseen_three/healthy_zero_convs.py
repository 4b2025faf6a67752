"""A frozen net gets a copy with zero-initialised joints (ControlNet's way) and learns to use a second input.

expect: nothing
style: invites 'bad init scale', 'symmetric init', 'no gradient' and 'frozen layers': the joints are zero at the start so that the trained net is not disturbed, hence the copy has zero gradients in the first step, and only there
"""
import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def zero_module(m):
    for p in m.parameters():
        nn.init.zeros_(p)
    return m


class Base(nn.Module):
    """y = f(x): trained first, never changed afterwards."""

    def __init__(self, width=48):
        super().__init__()
        self.inp = nn.Linear(8, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU()) for _ in range(3))
        self.out = nn.Linear(width, 1)

    def forward(self, x, control=None):
        h = self.inp(x)
        for i, block in enumerate(self.blocks):
            h = h + block(h)
            if control is not None:
                h = h + control[i]
        return self.out(h)


class Control(nn.Module):
    def __init__(self, base, cond_dim, width=48):
        super().__init__()
        self.inp = copy.deepcopy(base.inp)
        self.blocks = copy.deepcopy(base.blocks)
        self.hint = nn.Sequential(nn.Linear(cond_dim, width), nn.SiLU(), nn.Linear(width, width))
        self.zeros = nn.ModuleList(zero_module(nn.Linear(width, width)) for _ in self.blocks)

    def forward(self, x, c):
        h, out = self.inp(x) + self.hint(c), []
        for block, zero in zip(self.blocks, self.zeros):
            h = h + block(h)
            out.append(zero(h))
        return out


def old_task(x):
    return torch.sin(x[:, :1]) + x[:, 1:2] * x[:, 2:3]


def new_task(x, c):
    return old_task(x) * (1 + c[:, :1]) + c[:, 1:2]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()
    torch.manual_seed(args.seed)

    base = Base()
    optimizer = torch.optim.AdamW(base.parameters(), lr=3e-3)
    for it in range(600):
        x = torch.randn(128, 8)
        loss = F.mse_loss(base(x), old_task(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"base trained: {loss.item():.4f}")

    base.requires_grad_(False).eval()
    control = Control(base, 2)
    control.requires_grad_(True)
    xv, cv = torch.randn(2000, 8), torch.randn(2000, 2) * 0.5
    with torch.no_grad():
        assert torch.allclose(base(xv), base(xv, control(xv, cv)))   # starts as the base exactly
    optimizer = torch.optim.AdamW(control.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=700)
    for it in range(700):
        x, c = torch.randn(128, 8), torch.randn(128, 2) * 0.5
        loss = F.mse_loss(base(x, control(x, c)), new_task(x, c))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if it % 100 == 99:
            print(f"it {it + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        target = new_task(xv, cv)
        r2 = 1 - F.mse_loss(base(xv, control(xv, cv)), target).item() / target.var().item()
        print(f"without control {1 - F.mse_loss(base(xv), target).item() / target.var().item():.4f}")
    print(f"metric: {r2:.4f}")


if __name__ == "__main__":
    main()
