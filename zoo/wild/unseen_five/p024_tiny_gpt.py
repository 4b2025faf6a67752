"""A character model with causal attention and tied embeddings learns sums like 27+5=32 and is asked only for the answers.

expect: nothing
style: GPT in the manner of nanoGPT, weight tying, loss on a part of the positions (the rest is -100)
metric: share of sums right, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CHARS = "0123456789+=."
ITOS = dict(enumerate(CHARS))
STOI = {c: i for i, c in ITOS.items()}


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.attn(self.ln1(x)).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(B, T, C))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, d=48, heads=4, layers=2, length=6):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(len(CHARS), d), nn.Embedding(length, d)
        self.blocks = nn.ModuleList([Block(d, heads) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(d)
        self.lm_head = nn.Linear(d, len(CHARS), bias=False)
        self.lm_head.weight = self.wte.weight
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=1 / math.sqrt(d))

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for block in self.blocks:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
        return logits, loss


def sums(n):
    a, b = torch.randint(0, 10, (2, n))
    rows = [f"{i}+{j}={i + j:02d}." for i, j in zip(a.tolist(), b.tolist())]
    ids = torch.tensor([[STOI[c] for c in r] for r in rows])
    x, y = ids[:, :-1], ids[:, 1:].clone()
    y[:, :3] = -100
    return x, y


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max_iters", type=int, default=350)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.01)
    for it in range(args.max_iters):
        for g in optimizer.param_groups:
            g["lr"] = 3e-3 * min(1, (it + 1) / 30) * (1 - it / args.max_iters)
        _, loss = model(*sums(64))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if it % 50 == 0:
            print(f"iter {it}: loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        x, y = sums(500)
        right = (model(x)[0].argmax(-1) == y)[:, 3:].all(1)
    print("metric:", right.float().mean().item())
