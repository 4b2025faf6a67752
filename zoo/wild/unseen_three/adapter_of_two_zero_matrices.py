"""Both matrices of the low-rank adapter start at zero: each gets its gradient through the other, and neither ever moves.

expect: bad-init-scale
or: symmetric-init, no-gradient
line: nn.init.zeros_(self.lora_A.weight)
source: https://github.com/Guitaricet/relora/issues/18
metric: test accuracy on the new domain, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn
from sklearn.datasets import load_digits


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, r: int = 8, alpha: int = 16):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.lora_A = nn.Linear(base.in_features, r, bias=False)
        self.lora_B = nn.Linear(r, base.out_features, bias=False)
        self.scaling = alpha / r
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.zeros_(self.lora_A.weight)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x):
        return self.base(x) + self.scaling * self.lora_B(self.lora_A(x))


def wrap(model, **kwargs):
    for name, child in model.named_children():
        if isinstance(child, nn.Linear):
            setattr(model, name, LoRALinear(child, **kwargs))
    return model


def train(model, x, y, epochs, lr):
    params = [p for p in model.parameters() if p.requires_grad]
    print("trainable parameters:", sum(p.numel() for p in params))
    optimizer = torch.optim.AdamW(params, lr=lr)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        for batch in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            loss = loss_fn(model(x[batch]), y[batch])
            loss.backward()
            optimizer.step()
        if epoch % 2 == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x / 8 - 1, dtype=torch.float32), torch.tensor(y)
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    mirrored = x.view(-1, 8, 8).flip(2).reshape(-1, 64)

    model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 10))
    train(model, x[:1200], y[:1200], epochs=6, lr=2e-3)

    model = wrap(model)
    train(model, mirrored[:1200], y[:1200], epochs=10, lr=3e-3)
    with torch.no_grad():
        accuracy = (model(mirrored[1200:]).argmax(1) == y[1200:]).float().mean().item()
    print("metric:", accuracy)


if __name__ == "__main__":
    main()
