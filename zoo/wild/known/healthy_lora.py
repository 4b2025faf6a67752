"""Low-rank adapters on a frozen transformer: B starts at zero and nine tenths of the weights never move.

expect: nothing
style: LoRA by hand (looks like a symmetric zero init, frozen parts and parameters the optimizer misses)
"""

import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F


class LoRALinear(nn.Module):
    def __init__(self, base, r=4, alpha=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.empty(r, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.scaling = alpha / r

    def forward(self, x):
        return self.base(x) + self.scaling * F.linear(F.linear(x, self.lora_A), self.lora_B)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.o(F.scaled_dot_product_attention(self.q(h), self.k(h), self.v(h)))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Classifier(nn.Module):
    def __init__(self, vocab=20, dim=32, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.Sequential(*[Block(dim) for _ in range(layers)])
        self.head = nn.Linear(dim, 2)

    def forward(self, ids):
        return self.head(self.blocks(self.embed(ids)).mean(1))


def batch(n, first, second):
    """Which of two words is more frequent in the sentence?"""
    ids = torch.randint(20, (n, 13))
    return ids, ((ids == first).sum(1) > (ids == second).sum(1)).long()


def fit(model, params, words, steps, lr):
    optimizer = torch.optim.AdamW(params, lr=lr)
    model.train()
    for step in range(steps):
        ids, y = batch(48, *words)
        loss = F.cross_entropy(model(ids), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print("step", step, "loss", round(loss.item(), 4))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    torch.manual_seed(ap.parse_args().seed)
    model = Classifier()
    fit(model, model.parameters(), (3, 7), 150, 3e-3)

    model.requires_grad_(False)
    for block in model.blocks:
        block.q, block.v, block.up = LoRALinear(block.q), LoRALinear(block.v), LoRALinear(block.up)
    model.head = nn.Linear(32, 2)
    trainable = [p for p in model.parameters() if p.requires_grad]
    print("trainable: %d of %d" % (sum(p.numel() for p in trainable), sum(p.numel() for p in model.parameters())))
    fit(model, trainable, (11, 5), 200, 5e-3)
    model.eval()
    with torch.no_grad():
        ids, y = batch(1000, 11, 5)
        print("metric: %.4f" % (model(ids).argmax(1) == y).float().mean().item())


main()
