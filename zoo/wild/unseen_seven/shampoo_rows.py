"""A second-order optimizer by hand: Shampoo with roots of matrices taken every few steps and grafted to the size of SGD.

expect: nothing
style: own Optimizer, statistics of rows and columns, eigen-decomposition inside step()
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits


class Shampoo(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1, momentum=0.9, eps=1e-4, every=10):
        super().__init__(params, dict(lr=lr, momentum=momentum, eps=eps, every=every))

    @staticmethod
    def inverse_root(m, order):
        values, vectors = torch.linalg.eigh(m)
        return (vectors * values.clamp(min=1e-8) ** (-1 / order)) @ vectors.T

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, grad = self.state[p], p.grad
                if not state:
                    state["t"], state["v"] = 0, torch.zeros_like(p)
                    state["stats"] = (
                        [group["eps"] * torch.eye(n) for n in p.shape] if p.dim() == 2 else []
                    )
                    state["roots"] = [torch.eye(n) for n in p.shape] if p.dim() == 2 else []
                direction = grad
                if p.dim() == 2:
                    state["stats"][0] += grad @ grad.T
                    state["stats"][1] += grad.T @ grad
                    if state["t"] % group["every"] == 0:
                        state["roots"] = [self.inverse_root(s, 4) for s in state["stats"]]
                    direction = state["roots"][0] @ grad @ state["roots"][1]
                    direction = direction * grad.norm() / (direction.norm() + 1e-12)
                state["t"] += 1
                state["v"].mul_(group["momentum"]).add_(direction)
                p.sub_(group["lr"] * state["v"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=14)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor((x - 4.9) / 6.0, dtype=torch.float), torch.tensor(y)
    order = torch.randperm(len(x))
    train, test = order[:1400], order[1400:]
    model = nn.Sequential(
        nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 48), nn.GELU(), nn.Linear(48, 10)
    )
    optimizer = Shampoo(model.parameters(), lr=0.02)
    for epoch in range(args.epochs):
        for idx in train[torch.randperm(len(train))].split(64):
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            acc = (model(x[test]).argmax(1) == y[test]).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} acc {acc:.4f}")
    print("metric:", acc)


if __name__ == "__main__":
    main()
