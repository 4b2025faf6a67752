"""Tiny GPT in the nanoGPT manner: tied input and output embedding, warm-up and cosine decay set by hand.

expect: nothing
style: dataclass config, weight tying, decay/no-decay parameter groups, lr written into param_groups, random crops
"""
import argparse
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F

ap = argparse.ArgumentParser()
ap.add_argument("--seed", type=int, default=0)
torch.manual_seed(ap.parse_args().seed)


@dataclass
class GPTConfig:
    block_size: int = 32
    vocab_size: int = 20
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 64


class CausalSelfAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c_attn = nn.Linear(c.n_embd, 3 * c.n_embd, bias=False)
        self.c_proj = nn.Linear(c.n_embd, c.n_embd, bias=False)
        self.n_head = c.n_head

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.n_head, -1).transpose(1, 2) for t in self.c_attn(x).split(C, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(c.n_embd), nn.LayerNorm(c.n_embd)
        self.attn = CausalSelfAttention(c)
        self.mlp = nn.Sequential(nn.Linear(c.n_embd, 4 * c.n_embd), nn.GELU(), nn.Linear(4 * c.n_embd, c.n_embd))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.wte = nn.Embedding(c.vocab_size, c.n_embd)
        self.wpe = nn.Embedding(c.block_size, c.n_embd)
        self.h = nn.ModuleList(Block(c) for _ in range(c.n_layer))
        self.ln_f = nn.LayerNorm(c.n_embd)
        self.lm_head = nn.Linear(c.n_embd, c.vocab_size, bias=False)
        self.apply(self._init_weights)
        self.wte.weight = self.lm_head.weight  # weight tying

    @staticmethod
    def _init_weights(m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, mean=0.0, std=0.02)
        if isinstance(m, nn.Linear) and m.bias is not None:
            nn.init.zeros_(m.bias)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


config = GPTConfig()
# second order Markov text: sharp but not deterministic
table = torch.distributions.Dirichlet(torch.full((config.vocab_size,), 0.08)).sample((config.vocab_size, 3))
data = [0, 1]
for _ in range(30000):
    data.append(int(torch.multinomial(table[data[-1], data[-2] % 3], 1)))
data = torch.tensor(data)
train_data, val_data = data[:27000], data[27000:]
floor = -(table * table.clamp_min(1e-12).log()).sum(-1)
keys = (val_data[1:-1], val_data[:-2] % 3)
print(f"entropy of the source {floor[keys].mean():.3f}")


def get_batch(split, batch_size=24):
    d = train_data if split == "train" else val_data
    ix = torch.randint(len(d) - config.block_size, (batch_size,))
    rows = torch.stack([d[i : i + config.block_size + 1] for i in ix])
    return rows[:, :-1], rows[:, 1:]


@torch.no_grad()
def estimate_loss(model):
    model.eval()
    out = {s: torch.tensor([model(*get_batch(s))[1].item() for _ in range(8)]).mean().item() for s in ("train", "val")}
    model.train()
    return out


model = GPT(config)
decay = [p for p in model.parameters() if p.dim() >= 2]
nodecay = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": nodecay, "weight_decay": 0.0}], lr=3e-3, betas=(0.9, 0.95))
max_iters, warmup, max_lr, min_lr = 450, 30, 4e-3, 4e-4
for it in range(max_iters):
    if it < warmup:
        lr = max_lr * (it + 1) / warmup
    else:
        lr = min_lr + 0.5 * (1 + math.cos(math.pi * (it - warmup) / (max_iters - warmup))) * (max_lr - min_lr)
    for group in optimizer.param_groups:
        group["lr"] = lr
    if it % 100 == 0:
        print(it, estimate_loss(model))
    _, loss = model(*get_batch("train"))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
final = estimate_loss(model)
print(f"metric: {final['val'] - floor[keys].mean().item():.4f}")
