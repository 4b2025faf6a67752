"""Skip-gram with negative sampling on a made-up recipe corpus; sparse embeddings with SparseAdam and a dense bias with Adam.

expect: nothing
style: two optimizers stepped together, most rows of the embeddings get no gradient in a step, input vectors in a narrow range and output vectors at zero at the start like the original tool
"""
import argparse

import torch
import torch.nn.functional as F
from torch import nn

KITCHENS, WORDS_EACH, COMMON = 6, 25, 30
VOCAB = KITCHENS * WORDS_EACH + COMMON


def recipes(n, length=12):
    """Every recipe belongs to a kitchen; a third of its words are common ones."""
    kitchen = torch.randint(0, KITCHENS, (n, 1))
    own = kitchen * WORDS_EACH + torch.randint(0, WORDS_EACH, (n, length))
    common = KITCHENS * WORDS_EACH + torch.randint(0, COMMON, (n, length))
    return torch.where(torch.rand(n, length) < 0.33, common, own)


class SkipGram(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.centre = nn.Embedding(VOCAB, dim, sparse=True)
        self.context = nn.Embedding(VOCAB, dim, sparse=True)
        self.bias = nn.Parameter(torch.zeros(VOCAB))
        nn.init.uniform_(self.centre.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.context.weight)

    def score(self, c, o):
        return (self.centre(c) * self.context(o)).sum(-1) + self.bias[o]

    def forward(self, c, o, negative):
        positive = F.logsigmoid(self.score(c, o))
        rest = F.logsigmoid(-self.score(c[:, None], negative)).sum(1)
        return -(positive + rest).mean()


def pairs(text, n):
    row = torch.randint(0, len(text), (n,))
    i = torch.randint(0, text.size(1), (n,))
    j = (i + torch.randint(1, text.size(1), (n,))) % text.size(1)
    return text[row, i], text[row, j]


def neighbours_agree(model):
    v = F.normalize(model.centre.weight.detach()[:KITCHENS * WORDS_EACH], dim=1)
    sim = v @ v.T - 2 * torch.eye(len(v))
    kitchen = torch.arange(len(v)) // WORDS_EACH
    return (kitchen[sim.argmax(1)] == kitchen).float().mean().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    torch.manual_seed(p.parse_args().seed)
    text = recipes(1500)
    model = SkipGram()
    sparse = torch.optim.SparseAdam([model.centre.weight, model.context.weight], lr=0.01)
    dense = torch.optim.Adam([model.bias], lr=0.01)
    for step in range(1, 501):
        c, o = pairs(text, 256)
        loss = model(c, o, torch.randint(0, VOCAB, (256, 5)))
        sparse.zero_grad()
        dense.zero_grad()
        loss.backward()
        sparse.step()
        dense.step()
        if step % 100 == 0:
            print(step, round(loss.item(), 3))
    print(f"metric: {neighbours_agree(model):.4f}")


if __name__ == "__main__":
    main()
