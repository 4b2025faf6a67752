"""ListNet: the documents of one query are the batch, and the softmax runs over them, dimension 0.

expect: nothing
style: listwise learning to rank, one query per step (looks like a softmax over the batch)
"""

import argparse

import numpy as np
import torch
from torch import nn


class Ranker(nn.Module):
    def __init__(self, n_features):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_features, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, documents):
        return self.net(documents).squeeze(-1)


def listnet_loss(scores, relevance):
    return -(torch.softmax(relevance, dim=0) * torch.log_softmax(scores, dim=0)).sum()


def ndcg(scores, relevance, k=5):
    gain = lambda order: sum((2 ** relevance[d] - 1) / np.log2(i + 2) for i, d in enumerate(order[:k]))  # noqa: E731
    ideal = gain(np.argsort(-relevance))
    return gain(np.argsort(-scores)) / ideal if ideal > 0 else 1.0


def queries(n, rng, w):
    for _ in range(n):
        x = rng.standard_normal((rng.integers(8, 16), 8))
        utility = np.tanh(x @ w[0]) + (x @ w[1]) * (x[:, 0] > 0) + 0.2 * rng.standard_normal(len(x))
        yield torch.tensor(x, dtype=torch.float32), np.digitize(utility, [-0.5, 0.3, 1.0]).astype(np.float32)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((2, 8)) / 2
    train, test = list(queries(400, rng, w)), list(queries(100, rng, w))
    model = Ranker(8)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        total = 0.0
        for i in rng.permutation(len(train)):
            x, relevance = train[i]
            loss = listnet_loss(model(x), torch.from_numpy(relevance))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("epoch", epoch, "loss", total / len(train))
    with torch.no_grad():
        print("metric: %.4f" % np.mean([ndcg(model(x).numpy(), r) for x, r in test]))


if __name__ == "__main__":
    main()
