"""Federated averaging: each client starts from the server's weights, learns on its own few classes, and the server averages.

expect: nothing
style: deep copies and new optimizers in each round, clients with skewed labels, state dicts averaged
metric: test accuracy of the server, higher is better
"""

import argparse
import copy

import torch
import torch.nn as nn
from sklearn.datasets import load_digits


def local_update(model, x, y, epochs=2, lr=0.1):
    model = copy.deepcopy(model)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(epochs):
        for i in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[i]), y[i]).backward()
            optimizer.step()
    return model.state_dict()


def average(states):
    return {k: torch.stack([s[k] for s in states]).mean(0) for k in states[0]}


def split(x, y, clients, g):
    parts = [[] for _ in range(clients)]
    for c in range(10):
        rows = (y == c).nonzero().flatten()
        share = torch.rand(clients, generator=g) ** 3
        who = torch.multinomial(share, len(rows), replacement=True, generator=g)
        for k in range(clients):
            parts[k].append(rows[who == k])
    return [torch.cat(p) for p in parts]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    g = torch.Generator().manual_seed(args.seed)
    x, y = load_digits(return_X_y=True)
    perm = torch.randperm(len(x), generator=g)
    x, y = torch.tensor(x, dtype=torch.float32)[perm] / 16, torch.tensor(y)[perm]
    server = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    clients = split(x[:1300], y[:1300], 6, g)
    for r in range(args.rounds):
        server.load_state_dict(average([local_update(server, x[c], y[c]) for c in clients if len(c) > 8]))
        if r % 3 == 0:
            with torch.no_grad():
                print("round", r, "loss", nn.functional.cross_entropy(server(x[1300:]), y[1300:]).item())
    server.eval()
    with torch.no_grad():
        print("metric:", (server(x[1300:]).argmax(1) == y[1300:]).float().mean().item())


if __name__ == "__main__":
    main()
