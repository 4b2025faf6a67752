"""Extra heads guess the second and third token ahead; the list is multiplied, so all of them are one head.

expect: shared-layers
line: nn.ModuleList([Guess(width, symbols)] * ahead)
source: https://github.com/linkedin/Liger-Kernel/pull/269
metric: share of symbols guessed right, over all heads, higher is better
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

SYMBOLS, AHEAD, LENGTH = 12, 3, 24


class Guess(nn.Module):
    def __init__(self, width, symbols):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.out = nn.Linear(width, symbols)

    def forward(self, h):
        return self.out(h + F.silu(self.mix(h)))


class Guesser(nn.Module):
    def __init__(self, symbols=SYMBOLS, width=48, ahead=AHEAD):
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.heads = nn.ModuleList([Guess(width, symbols)] * ahead)

    def forward(self, tokens):
        h, _ = self.rnn(self.embed(tokens))
        return [head(h) for head in self.heads]


def sequences(n):
    """Each symbol follows from the one before by one of two fixed maps, which a sequence keeps."""
    maps = torch.stack([(torch.arange(SYMBOLS) * 5 + 1) % SYMBOLS, (torch.arange(SYMBOLS) * 7 + 3) % SYMBOLS])
    which = torch.randint(0, 2, (n,))
    tokens = [torch.randint(0, SYMBOLS, (n,))]
    for _ in range(LENGTH - 1):
        tokens.append(maps[which, tokens[-1]])
    return torch.stack(tokens, 1)


def parts(model, tokens):
    for distance, logits in enumerate(model(tokens), 1):
        yield logits[:, :-distance], tokens[:, distance:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = Guesser()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(args.steps):
        tokens = sequences(32)
        loss = sum(F.cross_entropy(guess.flatten(0, 1), told.flatten()) for guess, told in parts(model, tokens))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        right = [(guess.argmax(-1) == told).float().mean() for guess, told in parts(model, sequences(200))]
    print("metric:", torch.stack(right).mean().item())


if __name__ == "__main__":
    main()
