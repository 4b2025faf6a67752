"""Running parity of bit strings with a GRU; strings of two bits first, longer ones as soon as the short ones are mastered.

expect: nothing
style: curriculum: the data is served from easy to hard on purpose and the loss jumps up whenever the strings get longer
"""
import argparse

import torch
from torch import nn


class ParityGRU(nn.Module):
    def __init__(self, h=24):
        super().__init__()
        self.rnn = nn.GRU(1, h, batch_first=True)
        self.out = nn.Linear(h, 1)

    def forward(self, bits):
        y, _ = self.rnn(bits.unsqueeze(-1) * 2 - 1)
        return self.out(y).squeeze(-1)


def strings(n, length):
    bits = torch.randint(0, 2, (n, length)).float()
    return bits, bits.cumsum(1) % 2


class Curriculum:
    """One more bit after the running accuracy has passed the bar."""

    def __init__(self, start=2, stop=16, bar=0.97):
        self.length, self.stop, self.bar, self.running = start, stop, bar, 0.5

    def report(self, accuracy):
        self.running = 0.8 * self.running + 0.2 * accuracy
        if self.running > self.bar and self.length < self.stop:
            self.length += 2
            self.running = 0.8


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--steps", type=int, default=320)
    a = p.parse_args()
    torch.manual_seed(a.seed)
    model, plan = ParityGRU(), Curriculum()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.BCEWithLogitsLoss()
    for step in range(1, a.steps + 1):
        bits, parity = strings(64, plan.length)
        logits = model(bits)
        loss = criterion(logits, parity)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        plan.report(((logits > 0).float() == parity).float().mean().item())
        if step % 80 == 0:
            print(f"step {step} length {plan.length} loss {loss.item():.4f}")
    with torch.no_grad():
        bits, parity = strings(500, 16)
        acc = ((model(bits) > 0).float() == parity)[:, -1].float().mean().item()
    print(f"metric: {acc:.4f}")


if __name__ == "__main__":
    main()
