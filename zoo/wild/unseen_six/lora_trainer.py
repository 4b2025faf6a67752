"""A trainer for low-rank adapters has steps for everything, but none that zeroes the gradients after the optimizer's.

expect: missing-zero-grad
line: self.optimizer.step()
source: https://github.com/tenstorrent/tt-blacksmith/pull/711
metric: loss on held-out text of the new kind, lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base, self.scale = base, alpha / rank
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.a.T @ self.b.T)


class LM(nn.Module):
    def __init__(self, vocab=24, dim=48):
        super().__init__()
        self.emb, self.rnn = nn.Embedding(vocab, dim), nn.GRU(dim, dim, batch_first=True)
        self.up, self.down, self.out = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim), nn.Linear(dim, vocab)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.out(h + self.down(torch.relu(self.up(h))))


def text(n, step, vocab=24, length=16):
    """Walks through the alphabet with a step, sometimes a step back."""
    jumps = torch.where(torch.rand(n, length) < 0.15, -1, step)
    return (torch.randint(vocab, (n, 1)) + jumps.cumsum(1)) % vocab


class Trainer:
    def __init__(self, model, optimizer, log_every=50):
        self.model, self.optimizer, self.log_every, self.step = model, optimizer, log_every, 0

    def forward(self, batch):
        return F.cross_entropy(self.model(batch[:, :-1]).transpose(1, 2), batch[:, 1:])

    def training_step(self, batch):
        self.model.train()
        loss = self.forward(batch)
        loss.backward()
        self.optimizer.step()
        self.step += 1
        if self.step % self.log_every == 0:
            print("step", self.step, "loss", loss.item())

    def validate(self, batch):
        self.model.eval()
        with torch.no_grad():
            return self.forward(batch).item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = LM()
    pre = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(120):
        batch = text(64, 2)
        loss = F.cross_entropy(model(batch[:, :-1]).transpose(1, 2), batch[:, 1:])
        pre.zero_grad()
        loss.backward()
        pre.step()
    print("pretrained", loss.item())
    model.requires_grad_(False)
    model.up, model.down, model.out = LoRALinear(model.up), LoRALinear(model.down), LoRALinear(model.out)
    trainer = Trainer(model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-3))
    for _ in range(350):
        trainer.training_step(text(32, 3))
    print("metric:", trainer.validate(text(500, 3)))
