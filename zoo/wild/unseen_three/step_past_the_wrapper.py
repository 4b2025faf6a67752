"""The loop steps the optimizer inside the warm-up wrapper, not the wrapper: the rate stays at the zero it was built with.

expect: learning-rate-too-low
or: missing-step
line: opt.optimizer.step()
source: https://github.com/gentaiscool/end2end-asr-pytorch/issues/4
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn


class NoamOpt:
    """Raises the rate over the first steps, then lets it fall with the root of the step."""

    def __init__(self, dim, factor, warmup, optimizer):
        self.dim, self.factor, self.warmup = dim, factor, warmup
        self.optimizer = optimizer
        self._step = 0

    def rate(self):
        return self.factor * self.dim ** -0.5 * min(self._step ** -0.5, self._step * self.warmup ** -1.5)

    def zero_grad(self):
        self.optimizer.zero_grad()

    def step(self):
        self._step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        self.optimizer.step()


class SpokenDigits(nn.Module):
    def __init__(self, bands=12, dim=32, classes=6):
        super().__init__()
        self.inp = nn.Linear(bands, dim)
        self.place = nn.Parameter(torch.randn(1, 16, dim) * 0.1)
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.out = nn.Linear(dim, classes)

    def forward(self, x):
        return self.out(self.encoder(self.inp(x) + self.place).mean(1))


def recordings(n, templates):
    label = torch.randint(0, len(templates), (n,))
    gain = 0.7 + 0.6 * torch.rand(n, 1, 1)
    return gain * templates[label] + 1.2 * torch.randn(n, 16, 12), label


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    templates = torch.randn(6, 16, 12)
    x, y = recordings(2000, templates)
    model = SpokenDigits()
    opt = NoamOpt(32, 0.3, 100, torch.optim.Adam(model.parameters(), lr=0, betas=(0.9, 0.98), eps=1e-9))

    model.train()
    for step in range(args.steps):
        pick = torch.randint(0, len(x), (32,))
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x[pick]), y[pick])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.optimizer.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}")

    model.eval()
    x, y = recordings(500, templates)
    with torch.no_grad():
        print("metric:", (model(x).argmax(1) == y).float().mean().item())


if __name__ == "__main__":
    main()
