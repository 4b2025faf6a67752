"""scaled_dot_product_attention takes True for "look here" and gets the padding mask: only the padding is attended to.

expect: mask-inverted
or: input-ignored
line: attn_mask=padding[:, None, None, :]
source: https://github.com/InseeFrLab/torchTextClassifiers/pull/92
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, WIDTH, LABELS = 40, 16, 5


class LabelAttention(nn.Module):
    """One learnt query per label looks over the words."""

    def __init__(self, dim, labels, heads=4):
        super().__init__()
        self.heads = heads
        self.queries = nn.Parameter(torch.randn(labels, dim) * dim ** -0.5)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, dim)

    def split(self, t):
        return t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, words, padding):
        n = words.shape[0]
        q = self.split(self.queries.expand(n, -1, -1))
        k, v = self.split(self.key(words)), self.split(self.value(words))
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=padding[:, None, None, :])
        return self.out(seen.transpose(1, 2).flatten(2))


class TextClassifier(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.attention = LabelAttention(dim, LABELS)
        self.score = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 1))

    def forward(self, tokens):
        return self.score(self.attention(self.embed(tokens), tokens == 0)).squeeze(-1)


def corpus(n):
    tokens = torch.randint(6, VOCAB, (n, WIDTH))
    label = torch.randint(0, LABELS, (n,))
    length = torch.randint(5, WIDTH, (n, 1))
    place = (torch.rand(n) * length.squeeze(1)).long()
    tokens[torch.arange(n), place] = label + 1
    tokens[torch.arange(WIDTH).unsqueeze(0) >= length] = 0
    return tokens, label


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    tokens, label = corpus(4000)
    model = TextClassifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(args.steps):
        pick = torch.randint(0, len(tokens), (64,))
        loss = F.cross_entropy(model(tokens[pick]), label[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(step, loss.item())
    model.eval()
    tokens, label = corpus(1000)
    with torch.no_grad():
        print("metric:", (model(tokens).argmax(1) == label).float().mean().item())


if __name__ == "__main__":
    main()
