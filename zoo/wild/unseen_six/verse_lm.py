"""A causal transformer of two blocks on made-up verses, embedding and output tied, with warm-up and cosine decay.

expect: nothing
style: nanoGPT-like, tied weights, decay groups, scheduled rate by hand, scaled_dot_product_attention
metric: loss on held-out text in nats per character, lower is better
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

block_size, n_embd, n_head, max_iters, warmup_iters, learning_rate, min_lr = 32, 48, 4, 400, 30, 3e-3, 3e-4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd, bias=False), nn.Linear(n_embd, n_embd, bias=False)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 2 * n_embd), nn.GELU(), nn.Linear(2 * n_embd, n_embd))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, n_head, C // n_head).transpose(1, 2) for t in self.c_attn(self.ln_1(x)).split(C, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(B, T, C))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.Sequential(Block(), Block())
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab, bias=False)
        self.lm_head.weight = self.wte.weight
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.02)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        logits = self.lm_head(self.ln_f(self.h(x)))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / warmup_iters
    ratio = (it - warmup_iters) / (max_iters - warmup_iters)
    return min_lr + 0.5 * (1 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    who, does, what = ["the moon", "a fox", "old tom", "my heart"], ["sees", "hunts", "sings of"], ["the sea", "a red hen", "grey stones", "no one"]
    lines = [f"{who[a]} {does[b]} {what[c]}\n" for a, b, c in zip(*(torch.randint(n, (2500,)).tolist() for n in (4, 3, 4)))]
    text = "".join(lines)
    chars = sorted(set(text))
    data = torch.tensor([chars.index(c) for c in text])
    train_data, val_data = data[:-6000], data[-6000:]

    def get_batch(part, n=24):
        ix = torch.randint(len(part) - block_size - 1, (n,))
        return torch.stack([part[i : i + block_size] for i in ix]), torch.stack([part[i + 1 : i + 1 + block_size] for i in ix])

    model = GPT(len(chars))
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=learning_rate, betas=(0.9, 0.99))
    for it in range(max_iters):
        for group in optimizer.param_groups:
            group["lr"] = get_lr(it)
        loss = model(*get_batch(train_data))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if it % 50 == 0:
            print(f"iter {it}: loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        print("metric:", sum(model(*get_batch(val_data)).item() for _ in range(10)) / 10)
