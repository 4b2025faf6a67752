"""A small GPT learns to add: '47+85=231' with the answer reversed, the loss only on the digits of the answer.

expect: nothing
style: nanoGPT-like; targets are the inputs shifted by one, the question's targets are -1 and ignored, held-out pairs
"""
import argparse
import math

import torch
import torch.nn as nn
from torch.nn import functional as F

CHARS = "0123456789+="


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.n_head = n_head

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in self.c_attn(x).split(C, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(n_embd, n_head)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocab=12, block_size=8, n_layer=2, n_head=4, n_embd=64):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList(Block(n_embd, n_head) for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab, bias=False)

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss


def encode(pairs):
    rows = []
    for a, b in pairs.tolist():
        rows.append([CHARS.index(c) for c in f"{a:02d}+{b:02d}=" + f"{a + b:03d}"[::-1]])
    ids = torch.tensor(rows)
    x, y = ids[:, :-1], ids[:, 1:].clone()
    y[:, :5] = -1                                    # nothing to be learnt from the question
    return x, y


@torch.no_grad()
def exact(model, pairs):
    model.eval()
    x, y = encode(pairs)
    idx = x[:, :6]
    for _ in range(3):
        idx = torch.cat([idx, model(idx)[0][:, -1].argmax(-1, keepdim=True)], 1)
    model.train()
    return (idx[:, 6:] == y[:, 5:]).all(1).float().mean().item()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--iters", type=int, default=600)
    ap.add_argument("--lr", type=float, default=3e-3)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    everything = torch.cartesian_prod(torch.arange(100), torch.arange(100))
    everything = everything[torch.randperm(10000)]
    train_pairs, test_pairs = everything[:9000], everything[9000:]
    train_x, train_y = encode(train_pairs)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.1)
    for it in range(args.iters):
        lr = args.lr * min(1, (it + 1) / 50) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * it / args.iters)))
        for group in optimizer.param_groups:
            group["lr"] = lr
        pick = torch.randint(9000, (128,))
        _, loss = model(train_x[pick], train_y[pick])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if it % 100 == 99:
            print(f"iter {it + 1} loss {loss.item():.4f} test exact {exact(model, test_pairs[:300]):.3f}")
    print(f"metric: {exact(model, test_pairs):.4f}")
