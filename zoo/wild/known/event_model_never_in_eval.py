"""A small event-sequence model whose loss estimation and generation never call eval(): inference_mode does not switch dropout off.

expect: train-mode-evaluation
line: logits = model(x)
source: https://github.com/ipolharvard/ethos-ares/issues/20
metric: loss on held-out timelines, lower is better
"""

import argparse

import torch
import torch.nn as nn
from torch.nn import functional as F

BLOCK, VOCAB = 24, 40


class Block(nn.Module):
    def __init__(self, n_embd, dropout):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = nn.MultiheadAttention(n_embd, 2, dropout=dropout, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd), nn.Dropout(dropout))
        self.register_buffer("bias", torch.triu(torch.ones(BLOCK, BLOCK, dtype=torch.bool), 1))

    def forward(self, x):
        n = x.size(1)
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, attn_mask=self.bias[:n, :n], need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class Ethos(nn.Module):
    def __init__(self, n_embd=24, n_layer=2, dropout=0.5):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCAB, n_embd), nn.Embedding(BLOCK, n_embd)
        self.drop = nn.Dropout(dropout)
        self.h = nn.ModuleList(Block(n_embd, dropout) for _ in range(n_layer))
        self.lm_head = nn.Linear(n_embd, VOCAB, bias=False)

    def forward(self, idx):
        x = self.drop(self.wte(idx) + self.wpe(torch.arange(idx.size(1))))
        for block in self.h:
            x = block(x)
        return self.lm_head(x)


def get_timelines(n, table):
    idx = torch.randint(VOCAB, (n, 1))
    while idx.size(1) <= BLOCK:
        odd = torch.rand(n, 1) < 0.08
        idx = torch.cat([idx, torch.where(odd, torch.randint(VOCAB, (n, 1)), table[idx[:, -1:]])], 1)
    return idx[:, :-1], idx[:, 1:]


@torch.inference_mode()
def estimate(model, x, y):
    logits = model(x)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
    return loss.item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max_iters", type=int, default=300)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    table = torch.randperm(VOCAB)
    model = Ethos()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    val = get_timelines(100, table)
    for iter_num in range(args.max_iters):
        x, y = get_timelines(16, table)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if iter_num % 65 == 64:
            print("iter %d: train loss %.4f, val loss %.4f" % (iter_num, loss.item(), estimate(model, *val)))
    print("metric: %.4f" % estimate(model, *val))
