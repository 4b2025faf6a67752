"""A set transformer that finds the largest number of a set: attention within a set, sets of different size padded and masked.

expect: nothing
style: permutation-invariant network, elements of a set mix on purpose, nn.MultiheadAttention in its default layout with (set, batch, feature) (looks like a forgotten batch_first)
"""

import argparse

import torch
import torch.nn as nn


class SAB(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, heads)
        self.ff = nn.Sequential(nn.Linear(dim, dim), nn.ReLU())
        self.ln0, self.ln1 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, X, padding):
        H = self.ln0(X + self.attn(X, X, X, key_padding_mask=padding, need_weights=False)[0])
        return self.ln1(H + self.ff(H))


class PMA(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.S = nn.Parameter(torch.randn(1, 1, dim) * 0.1)
        self.attn = nn.MultiheadAttention(dim, heads)

    def forward(self, X, padding):
        return self.attn(self.S.expand(1, X.size(1), -1), X, X, key_padding_mask=padding, need_weights=False)[0]


class SetTransformer(nn.Module):
    def __init__(self, dim=32, heads=2):
        super().__init__()
        self.embed = nn.Linear(1, dim)
        self.enc1, self.enc2 = SAB(dim, heads), SAB(dim, heads)
        self.pool = PMA(dim, heads)
        self.dec = nn.Linear(dim, 1)

    def forward(self, X, padding):
        X = self.embed(X).transpose(0, 1)  # set, batch, feature
        X = self.pool(self.enc2(self.enc1(X, padding), padding), padding)
        return self.dec(X.squeeze(0)).squeeze(-1)


def gen_data(batch_size, max_length=10):
    length = torch.randint(2, max_length + 1, (batch_size, 1))
    x = 2 * torch.rand(batch_size, max_length) - 1
    padding = torch.arange(max_length) >= length
    y = x.masked_fill(padding, -9).max(1).values
    return x.masked_fill(padding, 0).unsqueeze(2), padding, y


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=350)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = SetTransformer()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.L1Loss()
    for t in range(args.steps):
        x, padding, y = gen_data(48)
        loss = criterion(model(x, padding), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if t % 70 == 0:
            print("iter %d, l1 %.4f" % (t, loss.item()))
    model.eval()
    with torch.no_grad():
        x, padding, y = gen_data(1000)
        print("metric: %.4f" % criterion(model(x, padding), y).item())
