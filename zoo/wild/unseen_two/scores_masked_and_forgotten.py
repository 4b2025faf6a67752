"""masked_fill is not in place: the result is thrown away, so the causal mask of this small GPT does nothing.

expect: call-without-effect
or: sees-the-future
line: att.masked_fill(self.mask[:T, :T] == 0, float("-inf"))
source: https://github.com/opendilab/DI-engine/issues/333
metric: accuracy of the next token after a prefix, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn
from torch.nn import functional as F


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.n_head = n_head
        self.register_buffer("mask", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (part.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for part in self.c_attn(x).chunk(3, dim=-1))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att.masked_fill(self.mask[:T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        return self.c_proj((att @ v).transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(n_embd, n_head, block_size)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocab=20, block_size=24, n_embd=48, n_layer=2):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.Sequential(*(Block(n_embd, 4, block_size) for _ in range(n_layer)))
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab, bias=False)

    def forward(self, idx, targets=None):
        x = self.h(self.wte(idx) + self.wpe(torch.arange(idx.size(1))))
        logits = self.lm_head(self.ln_f(x))
        loss = None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))
        return logits, loss


def rows(n):
    """Each token is one of two successors of the sum of the two before it."""
    seq = torch.randint(0, 20, (n, 25))
    for t in range(2, 25):
        seq[:, t] = (seq[:, t - 1] + seq[:, t - 2] + (torch.rand(n) < 0.15)) % 20
    return seq


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for it in range(500):
        seq = rows(24)
        _, loss = model(seq[:, :-1], seq[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if it % 50 == 0:
            print(f"iter {it}: loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        seq = rows(400)
        logits, _ = model(seq[:, :12])
    print("metric:", (logits[:, -1].argmax(1) == seq[:, 12]).float().mean().item())
