"""Matrix factorisation with sparse embeddings: SparseAdam for the tables, Adam for the rest, two optimizers in every step.

expect: nothing
metric: root mean squared error on test ratings, lower is better
"""

import argparse

import torch
import torch.nn as nn


class BiasedMF(nn.Module):
    def __init__(self, n_users, n_items, k=8):
        super().__init__()
        self.user_factors = nn.Embedding(n_users, k, sparse=True)
        self.item_factors = nn.Embedding(n_items, k, sparse=True)
        self.user_bias = nn.Embedding(n_users, 1, sparse=True)
        self.item_bias = nn.Embedding(n_items, 1, sparse=True)
        self.mix = nn.Linear(k, 1)
        for table in (self.user_factors, self.item_factors):
            nn.init.normal_(table.weight, std=0.1)
        nn.init.zeros_(self.user_bias.weight)
        nn.init.zeros_(self.item_bias.weight)
        nn.init.ones_(self.mix.weight)

    def forward(self, user, item):
        dot = self.mix(self.user_factors(user) * self.item_factors(item))
        return (dot + self.user_bias(user) + self.item_bias(item)).squeeze(1)


def make_ratings(n_users, n_items, n):
    u, v = torch.randn(n_users, 4) * 0.6, torch.randn(n_items, 4) * 0.6
    bu, bv = 0.4 * torch.randn(n_users), 0.5 * torch.randn(n_items)
    user, item = torch.randint(0, n_users, (n,)), torch.randint(0, n_items, (n,))
    rating = 3.5 + (u[user] * v[item]).sum(1) + bu[user] + bv[item] + 0.3 * torch.randn(n)
    return user, item, rating


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    user, item, rating = make_ratings(200, 120, 14000)
    cut = 12000
    mean = rating[:cut].mean()
    model = BiasedMF(200, 120)
    tables = [p for name, p in model.named_parameters() if not name.startswith("mix")]
    sparse_opt = torch.optim.SparseAdam(tables, lr=0.01)
    dense_opt = torch.optim.Adam(model.mix.parameters(), lr=1e-3)
    for epoch in range(6):
        total = 0.0
        for rows in torch.randperm(cut).split(200):
            loss = (model(user[rows], item[rows]) + mean - rating[rows]).pow(2).mean()
            sparse_opt.zero_grad()
            dense_opt.zero_grad()
            loss.backward()
            sparse_opt.step()
            dense_opt.step()
            total += loss.item()
        print(f"epoch {epoch} train mse {total / 60:.4f}")
    with torch.no_grad():
        error = model(user[cut:], item[cut:]) + mean - rating[cut:]
    print("metric:", error.pow(2).mean().sqrt().item())
