"""Federated averaging over ten clinics with unequal data: every round copies the weights out, trains a little and averages by size.

expect: nothing
style: state dictionaries averaged by hand, client optimizers made anew, only some clients per round
metric: accuracy on pooled test data, higher is better
"""

import argparse
import copy
import random

import torch
import torch.nn as nn
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale


def client_update(model, x, y, epochs=2, lr=0.05):
    local = copy.deepcopy(model)
    local.train()
    optimizer = torch.optim.SGD(local.parameters(), lr=lr, momentum=0.5)
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(8):
            loss = nn.functional.binary_cross_entropy_with_logits(local(x[idx]).squeeze(1), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return local.state_dict(), loss.item()


def average(states, sizes):
    total = sum(sizes)
    return {key: sum(state[key] * (n / total) for state, n in zip(states, sizes)) for key in states[0]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    random.seed(args.seed), torch.manual_seed(args.seed)
    X, y = load_breast_cancer(return_X_y=True)
    X, y = torch.tensor(scale(X), dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    order = torch.randperm(len(X))
    train, test = order[:400], order[400:]
    by_risk = train[X[train, 0].argsort()]
    sizes = [20, 20, 25, 30, 35, 40, 45, 50, 60, 75]
    clients = by_risk.split(sizes)
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
    for round_ in range(args.rounds):
        chosen = random.sample(range(10), 6)
        results = [client_update(model, X[clients[c]], y[clients[c]]) for c in chosen]
        model.load_state_dict(average([state for state, _ in results], [sizes[c] for c in chosen]))
        if round_ % 4 == 0:
            print("round", round_, "client losses", [round(loss, 3) for _, loss in results])
    model.eval()
    with torch.no_grad():
        print("metric:", ((model(X[test]).squeeze(1) > 0).float() == y[test]).float().mean().item())
