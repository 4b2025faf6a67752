"""A small language model in the newer manner: RMS norm, gated units, rotary positions, grouped queries, tied output, z-loss.

expect: nothing
style: micro-batches accumulated, warmup and cosine, decay on matrices only, dataset drawn as random windows
metric: bits per character on held-out text, lower is better
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

RULES = {
    "s": ["n v o. ", "n v n. ", "the n v. "],
    "n": ["cat", "dog", "crow", "old man"],
    "v": ["sees", "likes", "hears"],
    "o": ["the sea", "a song", "nothing"],
}


def text(length, generator):
    pick = lambda key: RULES[key][int(torch.randint(len(RULES[key]), (), generator=generator))]
    parts, size = [], 0
    while size < length:
        line = (
            " ".join(
                pick(w)
                if w in RULES
                else w.replace("o.", pick("o") + ".")
                .replace("n.", pick("n") + ".")
                .replace("v.", pick("v") + ".")
                for w in pick("s").strip().split(" ")
            )
            + " "
        )
        parts.append(line)
        size += len(line)
    return "".join(parts)[:length]


class RMSNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.g = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return self.g * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def rotate(x):
    t, d = x.shape[-2:]
    angle = torch.arange(t)[:, None] * 10000 ** (-torch.arange(0, d, 2) / d)
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack(
        [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1
    ).flatten(-2)


class Layer(nn.Module):
    def __init__(self, d=48, heads=4, groups=2):
        super().__init__()
        self.h, self.g, self.dh = heads, groups, d // heads
        self.n1, self.n2 = RMSNorm(d), RMSNorm(d)
        self.q, self.kv, self.o = (
            nn.Linear(d, d, bias=False),
            nn.Linear(d, 2 * groups * self.dh, bias=False),
            nn.Linear(d, d, bias=False),
        )
        self.up, self.gate, self.down = (
            nn.Linear(*s, bias=False) for s in ((d, 128), (d, 128), (128, d))
        )

    def forward(self, x):
        b, t, d = x.shape
        h = self.n1(x)
        q = self.q(h).view(b, t, self.h, self.dh).transpose(1, 2)
        k, v = (
            z.view(b, t, self.g, self.dh).transpose(1, 2).repeat_interleave(self.h // self.g, 1)
            for z in self.kv(h).chunk(2, -1)
        )
        y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        h = self.n2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class LM(nn.Module):
    def __init__(self, vocab, d=48, depth=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        nn.init.normal_(self.emb.weight, std=0.05)
        self.layers, self.norm = nn.ModuleList(Layer(d) for _ in range(depth)), RMSNorm(d)

    def forward(self, x):
        x = self.emb(x)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) @ self.emb.weight.T


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=220)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    corpus = text(24000, torch.Generator().manual_seed(1))
    chars = sorted(set(corpus))
    ids = torch.tensor([chars.index(c) for c in corpus])
    train, held = ids[:20000], ids[20000:]
    model = LM(len(chars))
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
        lr=4e-3,
        betas=(0.9, 0.95),
    )
    rate = lambda s: (
        min(1.0, (s + 1) / 20) * (0.1 + 0.45 * (1 + math.cos(math.pi * s / args.steps)))
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    for step in range(args.steps):
        for _ in range(2):
            at = torch.randint(len(train) - 65, (8,))
            rows = torch.stack([train[i : i + 65] for i in at])
            logits = model(rows[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
            ((loss + 1e-4 * logits.logsumexp(-1).pow(2).mean()) / 2).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.4f}, lr {schedule.get_last_lr()[0]:.2e}")
    rows = held[: 61 * 65].view(-1, 65)
    with torch.no_grad():
        nats = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten()).item()
    print("metric:", nats / math.log(2))


if __name__ == "__main__":
    main()
