"""A language model with rotary positions under autocast: their frequencies take the type of the activations, and bfloat16 cannot count beyond 256.

expect: position-precision-lost
or: update-below-precision
line: inv_freq = self.inv_freq.to(x.dtype)
source: https://github.com/EleutherAI/gpt-neox/issues/1003
metric: accuracy beyond position 256, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim)))

    def forward(self, x):
        inv_freq = self.inv_freq.to(x.dtype)
        t = torch.arange(x.size(-2)).type_as(inv_freq)
        freqs = torch.outer(t, inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        cos, sin = emb.cos().to(x.dtype), emb.sin().to(x.dtype)
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.rotary = heads, RotaryEmbedding(d // heads)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(self.rotary(q), self.rotary(k), v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class LM(nn.Module):
    def __init__(self, vocab=16, d=48):
        super().__init__()
        self.emb, self.block, self.head = nn.Embedding(vocab, d), Block(d, 2), nn.Linear(d, vocab)

    def forward(self, x):
        return self.head(self.block(self.emb(x)))


def echoes(n, length=448, delay=3):
    """The answer at every place is the token three places before."""
    x = torch.randint(16, (n, length))
    return x, torch.cat([torch.zeros(n, delay, dtype=torch.long), x[:, :-delay]], 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=260)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = LM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for step in range(args.steps):
        x, y = echoes(6)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(x)
        loss = F.cross_entropy(logits.float().flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 40 == 0:
            print(f"iteration {step} lm loss {loss.item():.4f}")
    x, y = echoes(24)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        right = model(x).argmax(-1) == y
    print(f"up to 256: {right[:, :256].float().mean().item():.3f}")
    print("metric:", right[:, 256:].float().mean().item())


if __name__ == "__main__":
    main()
