"""A classifier whose input gradients are penalised: each step differentiates through a gradient.

expect: nothing
style: double backward with autograd.grad and create_graph, inputs that require gradients, spectral norm
metric: accuracy on noisy test pictures, higher is better
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import autograd, nn, optim
from torch.nn.utils.parametrizations import spectral_norm


class Smooth(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.first = nn.Linear(64, width)
        self.second = spectral_norm(nn.Linear(width, width))
        self.last = nn.Linear(width, 10)

    def forward(self, x):
        return self.last(torch.nn.functional.softplus(self.second(torch.nn.functional.softplus(self.first(x)))))


def penalty(model, x, y):
    x = x.clone().requires_grad_()
    chosen = model(x).log_softmax(1).gather(1, y[:, None]).sum()
    (gradient,) = autograd.grad(chosen, x, create_graph=True)
    return gradient.pow(2).sum(1).mean()


def main(seed, epochs):
    torch.manual_seed(seed)
    x, y = load_digits(return_X_y=True)
    p = torch.randperm(len(x))
    x, y = torch.tensor(x, dtype=torch.float32)[p] / 16, torch.tensor(y)[p]
    model = Smooth()
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        for i in torch.randperm(1400).split(50):
            fit = nn.functional.cross_entropy(model(x[i]), y[i])
            loss = fit + 0.02 * penalty(model, x[i], y[i])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 3 == 0:
            print("epoch", epoch, "fit", fit.item(), "with penalty", loss.item())
    model.eval()
    with torch.no_grad():
        noisy = x[1400:] + 0.15 * torch.randn_like(x[1400:])
        return (model(noisy).argmax(1) == y[1400:]).float().mean().item()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--epochs", type=int, default=12)
    a = p.parse_args()
    print("metric:", main(a.seed, a.epochs))
