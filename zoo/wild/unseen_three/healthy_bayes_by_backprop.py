"""Bayes by backprop: weights are distributions, and predictions at test time are averaged over draws of the weights.

expect: nothing
style: invites 'random evaluation' and 'unbalanced loss terms': in eval mode the same input gives other outputs at every pass, which is the posterior, and the KL term has the weight 1/N of the bound
"""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class BayesLinear(nn.Module):
    def __init__(self, i, o, prior_std=1.0):
        super().__init__()
        self.w_mu = nn.Parameter(torch.randn(o, i) / math.sqrt(i))
        self.w_rho = nn.Parameter(torch.full((o, i), -4.0))
        self.b_mu = nn.Parameter(torch.zeros(o))
        self.b_rho = nn.Parameter(torch.full((o,), -4.0))
        self.prior_std = prior_std

    def forward(self, x):
        """Local reparametrisation: draw the activations instead of the weights."""
        w_var, b_var = F.softplus(self.w_rho) ** 2, F.softplus(self.b_rho) ** 2
        mean = F.linear(x, self.w_mu, self.b_mu)
        var = F.linear(x ** 2, w_var, b_var)
        return mean + var.sqrt() * torch.randn_like(mean)

    def kl(self):
        total = 0.0
        for mu, rho in ((self.w_mu, self.w_rho), (self.b_mu, self.b_rho)):
            s = F.softplus(rho)
            total = total + (math.log(self.prior_std) - s.log() + (s ** 2 + mu ** 2) / (2 * self.prior_std ** 2) - 0.5).sum()
        return total


class BNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([BayesLinear(2, 32), BayesLinear(32, 32), BayesLinear(32, 2)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.tanh(layer(x))
        return self.layers[-1](x)

    def kl(self):
        return sum(layer.kl() for layer in self.layers)


def two_moons(n, g):
    y = torch.randint(0, 2, (n,), generator=g)
    a = math.pi * torch.rand(n, generator=g)
    x = torch.where(y[:, None] == 0, torch.stack([a.cos(), a.sin()], 1), torch.stack([1 - a.cos(), 0.5 - a.sin()], 1))
    x = x + 0.15 * torch.randn(n, 2, generator=g)
    return (x - torch.tensor([0.5, 0.25])) / torch.tensor([0.87, 0.5]), y


def predict(model, x, draws=30):
    model.eval()
    with torch.no_grad():
        return torch.stack([F.softmax(model(x), 1) for _ in range(draws)]).mean(0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=40)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    g = torch.Generator().manual_seed(args.seed)
    (X, y), (Xt, yt) = two_moons(1500, g), two_moons(600, g)
    model = BNN()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    for epoch in range(args.epochs):
        model.train()
        nll_sum = 0.0
        for idx in torch.randperm(len(X)).split(75):
            nll = F.cross_entropy(model(X[idx]), y[idx])
            loss = nll + model.kl() / len(X)
            opt.zero_grad()
            loss.backward()
            opt.step()
            nll_sum += nll.item() * len(idx)
        sched.step()
        if epoch % 8 == 7:
            probs = predict(model, Xt, draws=5)
            print(f"epoch {epoch + 1} nll {nll_sum / len(X):.4f} kl {model.kl().item() / len(X):.4f} "
                  f"test acc {(probs.argmax(1) == yt).float().mean().item():.4f}")
    probs = predict(model, Xt)
    print(f"metric: {(probs.argmax(1) == yt).float().mean().item():.4f}")
