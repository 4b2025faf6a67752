"""Tabular classifier built from a list of sizes; the builder joins the linear layers without anything between them, so the deep network was one linear map and could not learn an interaction.

expect: missing-activation
line: layers.append(nn.Linear(
source: https://github.com/somepago/saint/issues/23
metric: test accuracy, higher is better
"""
import argparse

import torch
from torch import nn


class MLP(nn.Module):
    def __init__(self, dims):
        super().__init__()
        dims_pairs = list(zip(dims[:-1], dims[1:]))
        layers = []
        for dim_in, dim_out in dims_pairs:
            layers.append(nn.Linear(dim_in, dim_out))
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)


class TabularModel(nn.Module):
    """Numbers as they are, categories through embeddings, an MLP on top."""

    def __init__(self, categories, n_cont, dim=4):
        super().__init__()
        self.embeds = nn.ModuleList([nn.Embedding(c, dim) for c in categories])
        self.mlp = MLP([n_cont + dim * len(categories), 64, 32, 2])

    def forward(self, categ, cont):
        parts = [emb(categ[:, i]) for i, emb in enumerate(self.embeds)]
        return self.mlp(torch.cat(parts + [cont], dim=1))


def make_table(n):
    categ = torch.stack([torch.randint(0, 3, (n,)), torch.randint(0, 4, (n,))], 1)
    cont = torch.randn(n, 6)
    label = ((cont[:, 0] * cont[:, 1] > 0) ^ (categ[:, 0] == 1)).long()
    return categ, cont, label


def run(seed):
    torch.manual_seed(seed)
    categ, cont, label = make_table(3000)
    t_categ, t_cont, t_label = make_table(1000)
    model = TabularModel([3, 4], 6)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(12):
        model.train()
        running_loss = 0.0
        for idx in torch.randperm(3000).split(128):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(categ[idx], cont[idx]), label[idx])
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        print(f"[EPOCH {epoch + 1}] {running_loss:.3f}")
    model.eval()
    with torch.no_grad():
        return (model(t_categ, t_cont).argmax(1) == t_label).float().mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    print(f"metric: {run(parser.parse_args().seed):.4f}")
