"""Curriculum learning: sequences come in order of their length, short ones first, and are not shuffled across lengths.

expect: nothing
metric: accuracy on long test sequences, higher is better
"""

import argparse
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence


class Adder(nn.Module):
    """Reads marked numbers of -1, 0, 1 and says whether the marked ones sum above zero, at zero, or below."""

    def __init__(self, hidden=48):
        super().__init__()
        self.gru = nn.GRU(2, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 3)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        _, h = self.gru(packed)
        return self.out(h[-1])


def sample(length):
    number = torch.randint(-1, 2, (length,)).float()
    marked = (torch.rand(length) < 0.5).float()
    total = (number * marked).sum()
    return torch.stack([number, marked], 1), int(total.sign()) + 1


def collate(items):
    xs, ys = zip(*items)
    return pad_sequence(xs, batch_first=True), torch.tensor([len(x) for x in xs]), torch.tensor(ys)


def curriculum(n_stages, per_stage, batch_size):
    """Stage s has lengths up to 3 + 3 s; inside a stage the samples are shuffled."""
    for stage in range(n_stages):
        items = [sample(random.randint(2, 3 + 3 * stage)) for _ in range(per_stage)]
        random.shuffle(items)
        for i in range(0, per_stage, batch_size):
            yield stage, collate(items[i : i + batch_size])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    random.seed(seed)
    torch.manual_seed(seed)
    model = Adder()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step, (stage, (x, lengths, y)) in enumerate(curriculum(6, 3200, 32)):
        loss = nn.functional.cross_entropy(model(x, lengths), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0:
            print(f"stage {stage} step {step} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        x, lengths, y = collate([sample(random.randint(12, 18)) for _ in range(500)])
        print("metric:", (model(x, lengths).argmax(1) == y).float().mean().item())
