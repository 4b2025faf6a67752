"""Low-rank adapters: a pretrained text classifier is moved to a dialect by training only the A and B matrices.

expect: nothing
style: B starts at zero, so A gets no gradient in the first step; all original weights are frozen and not in the optimizer; the adapters are merged at the end
"""
import argparse

import torch
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base, r=4, alpha=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(r, base.in_features) / base.in_features ** 0.5)
        self.B = nn.Parameter(torch.zeros(base.out_features, r))
        self.scale = alpha / r

    def forward(self, x):
        return self.base(x) + (x @ self.A.T @ self.B.T) * self.scale

    @torch.no_grad()
    def merge(self):
        self.base.weight += self.scale * self.B @ self.A
        return self.base


class BagOfWords(nn.Module):
    def __init__(self, vocab=200, d=32, classes=5):
        super().__init__()
        self.emb = nn.EmbeddingBag(vocab, d, mode="mean")
        self.fc1, self.fc2 = nn.Linear(d, 48), nn.Linear(48, classes)

    def forward(self, tokens):
        return self.fc2(torch.relu(self.fc1(self.emb(tokens))))


def texts(n, topic_words):
    """Half of the words of a text come from the list of its topic."""
    y = torch.randint(0, 5, (n,))
    own = topic_words[y].gather(1, torch.randint(0, 20, (n, 12)))
    noise = torch.randint(0, 200, (n, 12))
    return torch.where(torch.rand(n, 12) < 0.5, own, noise), y


def fit(model, data, steps, lr):
    params = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(params, lr=lr)
    for step in range(steps):
        x, y = data(64)
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"  {sum(p.numel() for p in params)} trained numbers, last loss {loss.item():.3f}")


@torch.no_grad()
def accuracy(model, data):
    x, y = data(2000)
    return (model(x).argmax(1) == y).float().mean().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    torch.manual_seed(p.parse_args().seed)
    words = torch.randperm(200)[:100].view(5, 20)
    standard = lambda n: texts(n, words)
    dialect = lambda n: texts(n, words.roll(1, 0))  # every topic uses another topic's words
    model = BagOfWords()
    fit(model, standard, 300, 5e-3)
    print(f"standard {accuracy(model, standard):.3f}, dialect {accuracy(model, dialect):.3f}")

    model.emb.requires_grad_(False)
    model.fc1, model.fc2 = LoRALinear(model.fc1), LoRALinear(model.fc2)
    fit(model, dialect, 300, 1e-2)
    model.fc1, model.fc2 = model.fc1.merge(), model.fc2.merge()
    print(f"metric: {accuracy(model, dialect):.4f}")


if __name__ == "__main__":
    main()
