"""Additions as a translation task: an encoder-decoder transformer with teacher forcing writes the digits of a sum, backwards.

expect: nothing
style: nn.Transformer, generate_square_subsequent_mask, greedy decoding for the metric, label smoothing
metric: share of sums written without a mistake, higher is better
"""

import argparse

import torch
import torch.nn as nn

BOS, PLUS = 10, 11


class Adder(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.tok, self.pos = nn.Embedding(12, dim), nn.Embedding(8, dim)
        self.core = nn.Transformer(dim, 4, 2, 2, 96, dropout=0.0, batch_first=True, norm_first=True)
        self.out = nn.Linear(dim, 10)

    def embed(self, t):
        return self.tok(t) + self.pos(torch.arange(t.size(1)))

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1))
        return self.out(self.core(self.embed(src), self.embed(tgt), tgt_mask=mask, tgt_is_causal=True))


def sums(n):
    a, b = torch.randint(0, 100, (2, n))
    src = torch.stack([a % 10, a // 10, torch.full_like(a, PLUS), b % 10, b // 10], 1)
    c = a + b
    return src, torch.stack([c % 10, c // 10 % 10, c // 100], 1)


@torch.no_grad()
def greedy(model, src):
    tgt = torch.full((len(src), 1), BOS)
    for _ in range(3):
        tgt = torch.cat([tgt, model(src, tgt)[:, -1].argmax(-1, keepdim=True)], 1)
    return tgt[:, 1:]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=600)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = Adder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=args.steps, pct_start=0.1)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.02)
    for step in range(args.steps):
        src, tgt = sums(128)
        given = torch.cat([torch.full((128, 1), BOS), tgt[:, :-1]], 1)
        loss = criterion(model(src, given).transpose(1, 2), tgt)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % 100 == 0:
            print("step", step, "loss", loss.item())
    model.eval()
    src, tgt = sums(1000)
    print("metric:", (greedy(model, src) == tgt).all(1).float().mean().item())
