"""Character model with hand-written attention; the causal mask was only applied on the path that also has a padding mask, training passed none, the training loss fell below what the text allows and the model could not continue a prefix.

expect: sees-the-future
line: if att_mask is not None:
source: https://github.com/facebookresearch/xformers/issues/103
metric: accuracy of the next character given only the characters before it, higher is better
"""
import argparse
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

NAMES = ["ada", "bob", "cyd", "dora", "eli", "fay"]
VERBS = ["sees", "likes", "calls", "helps"]


def story(rng, n_sentences):
    out = []
    for _ in range(n_sentences):
        a, b = rng.sample(NAMES, 2)
        out.append(f"{a} {rng.choice(VERBS)} {b}, {b} {rng.choice(VERBS)} {a}.")
    return " ".join(out)


class CausalAttention(nn.Module):
    def __init__(self, d, heads, causal=True):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)

    def forward(self, x, att_mask=None):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(d // self.heads)
        if att_mask is not None:
            if self.causal:
                att_mask = att_mask & torch.ones(t, t, dtype=torch.bool).tril()
            scores = scores.masked_fill(~att_mask, float("-inf"))
        y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.att = CausalAttention(d, heads)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x, att_mask=None):
        x = x + self.att(self.ln1(x), att_mask)
        return x + self.ff(self.ln2(x))


class CharLM(nn.Module):
    def __init__(self, vocab, d=32, heads=4, layers=2, ctx=32):
        super().__init__()
        self.ctx = ctx
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(ctx, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, vocab)

    def forward(self, idx, att_mask=None):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1)))
        for block in self.blocks:
            x = block(x, att_mask)
        return self.head(self.ln(x))


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--seed", type=int, default=0)
    seed = cli.parse_args().seed
    torch.manual_seed(seed)
    rng = random.Random(seed)
    text = story(rng, 600)
    chars = sorted(set(text))
    data = torch.tensor([chars.index(c) for c in text])
    train, test = data[:-2000], data[-2000:]

    model = CharLM(len(chars))
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(1, 261):
        start = torch.randint(0, len(train) - model.ctx - 1, (16,))
        x = torch.stack([train[s:s + model.ctx] for s in start])
        y = torch.stack([train[s + 1:s + model.ctx + 1] for s in start])
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 65 == 0:
            print(f"step {step} loss {loss.item():.3f}")

    model.eval()
    with torch.no_grad():
        start = torch.arange(0, len(test) - 21, 3)
        prefix = torch.stack([test[s:s + 20] for s in start])
        nxt = test[start + 20]
        hit = (model(prefix)[:, -1].argmax(-1) == nxt).float().mean().item()
    print(f"metric: {hit:.4f}")


if __name__ == "__main__":
    main()
