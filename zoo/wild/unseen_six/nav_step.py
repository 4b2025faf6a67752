"""A model of how a robot's view changes: with bfloat16 enabled the branch forgets opt.zero_grad(), which only the float32 branch calls.

expect: missing-zero-grad
line: with torch.autocast("cpu", dtype=torch.bfloat16):
source: https://github.com/facebookresearch/nwm/issues/16
metric: error of the predicted next state, lower is better
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Dynamics(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.embed = nn.Linear(6, hidden)
        self.blocks = nn.ModuleList([nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, hidden)) for _ in range(2)])
        self.out = nn.Linear(hidden, 4)

    def forward(self, state, action):
        h = self.embed(torch.cat([state, action], -1))
        for block in self.blocks:
            h = h + block(h)
        return self.out(h)


def simulate(n):
    position, heading = torch.rand(n, 2) * 2 - 1, torch.rand(n) * 2 * math.pi
    turn, speed = torch.rand(n) - 0.5, torch.rand(n)
    state = torch.cat([position, heading.cos()[:, None], heading.sin()[:, None]], 1)
    heading = heading + turn
    direction = torch.stack([heading.cos(), heading.sin()], 1)
    nxt = torch.cat([position + speed[:, None] * direction, direction], 1)
    return state, torch.stack([turn, speed], 1), nxt


def train_step(model, opt, batch, bfloat_enable):
    state, action, target = batch
    if bfloat_enable:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.mse_loss(model(state, action).float(), target)
        loss.backward()
        opt.step()
    else:
        loss = F.mse_loss(model(state, action), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--bfloat16", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = Dynamics()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0)
    running = 0.0
    for step in range(args.steps):
        running += train_step(model, opt, simulate(128), bool(args.bfloat16))
        if (step + 1) % 100 == 0:
            print(f"(step={step + 1:05d}) Train Loss: {running / 100:.5f}")
            running = 0.0
    model.eval()
    with torch.no_grad():
        state, action, target = simulate(2000)
        print("metric:", F.mse_loss(model(state, action), target).item())


if __name__ == "__main__":
    main()
