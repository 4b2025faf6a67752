"""A language model is also told when not to stop: the penalty is log(1 - p) of the end token, and p reaches 1.

expect: non-finite
line: return -torch.log(1 - torch.softmax(logits, -1)[..., EOS])
source: https://foreai.co/blog/nans-out-of-nowhere-the-trick-that-saved-my-training-run
metric: share of endings placed rightly, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

EOS, VOCAB = 0, 8


def penalty_when_ending(logits):
    return -torch.log(1 - torch.softmax(logits, -1)[..., EOS])


def penalty_when_going_on(logits):
    return -torch.log_softmax(logits, -1)[..., EOS]


class Writer(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.head = nn.Linear(d, VOCAB, bias=False)

    def forward(self, x):
        h = F.normalize(self.rnn(self.embed(x))[0], dim=-1)
        return 30.0 * F.linear(h, F.normalize(self.head.weight, dim=-1))


def stories(n, length=14):
    """A story ends after its first 1."""
    x = torch.randint(1, VOCAB, (n, length))
    ends = x == 1
    y = torch.cat([x[:, 1:], torch.randint(1, VOCAB, (n, 1))], 1)
    return x, torch.where(ends, torch.full_like(y, EOS), y), ends


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alpha", type=float, default=2.0)
    parser.add_argument("--beta", type=float, default=2.0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = Writer()
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(500):
        x, y, ends = stories(48)
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        loss = loss + args.alpha * (penalty_when_ending(logits) * ~ends).mean() + args.beta * (penalty_when_going_on(logits) * ends).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print("step", step, "loss", loss.item())
    with torch.no_grad():
        x, y, ends = stories(300)
        print("metric:", ((model(x).argmax(-1) == EOS) == ends).float().mean().item() if torch.isfinite(model(x)).all() else 0.0)


if __name__ == "__main__":
    main()
