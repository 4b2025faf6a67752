"""A deep transformer whose residual connection adds the result to itself: what came in is lost at every layer.

expect: residual-lost
or: vanishing-gradient, input-collapsed
line: x = x + x
source: https://github.com/kyegomez/BitNet/issues/32
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attend = nn.MultiheadAttention(dim, heads, batch_first=True)

    def forward(self, q, k, v):
        q = k = v = self.norm(q)
        return self.attend(q, k, v, need_weights=False)


class FeedForward(nn.Sequential):
    def __init__(self, dim):
        super().__init__(
            nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)
        )


class Transformer(nn.Module):
    def __init__(self, dim, heads, depth):
        super().__init__()
        self.layers = nn.ModuleList(Attention(dim, heads) for _ in range(depth))
        self.ffn_layers = nn.ModuleList(FeedForward(dim) for _ in range(depth))

    def forward(self, x):
        for attn, ffn in zip(self.layers, self.ffn_layers):
            x, _ = attn(x, x, x)
            x = x + x
            x = ffn(x) + x
        return x


class BracketModel(nn.Module):
    def __init__(self, vocab=6, dim=32, length=16):
        super().__init__()
        self.tokens, self.places = (
            nn.Embedding(vocab, dim),
            nn.Parameter(0.1 * torch.randn(length, dim)),
        )
        self.transformer = Transformer(dim, heads=4, depth=5)
        self.to_logits = nn.Linear(dim, vocab)

    def forward(self, x):
        return self.to_logits(self.transformer(self.tokens(x) + self.places))


def sequences(n, length=16, vocab=6):
    """Every place is to say its own token plus the first one's, modulo the number of tokens."""
    x = torch.randint(vocab, (n, length))
    return x, (x + x[:, :1]) % vocab


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--num-batches", type=int, default=350)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = BracketModel()
    optim = torch.optim.Adam(model.parameters(), lr=args.learning_rate)
    x_test, y_test = sequences(300)
    for i in range(args.num_batches):
        x, y = sequences(32)
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optim.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optim.step()
        if i % 100 == 0:
            print(f"training loss: {loss.item()}")
    with torch.no_grad():
        print("metric:", (model(x_test).argmax(-1) == y_test).float().mean().item())


if __name__ == "__main__":
    main()
