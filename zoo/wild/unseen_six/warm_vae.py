"""A VAE whose divergence is weighted by a slowly growing beta: the printed loss rises while the model improves.

expect: nothing
style: KL warm-up, Bernoulli decoder on grey values, importance-free evaluation
metric: squared error of reconstructions per image, lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.distributions import Bernoulli, Normal, kl_divergence


class VAE(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ELU(), nn.Linear(128, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 128), nn.ELU(), nn.Linear(128, 64))

    def posterior(self, x):
        mean, raw = self.encoder(x).chunk(2, -1)
        return Normal(mean, F.softplus(raw) + 1e-3)

    def elbo(self, x, beta):
        q = self.posterior(x)
        z = q.rsample()
        log_px = Bernoulli(logits=self.decoder(z), validate_args=False).log_prob(x).sum(-1)
        kl = kl_divergence(q, Normal(0.0, 1.0)).sum(-1)
        return (log_px - beta * kl).mean(), kl.mean()


def run(seed, epochs=25):
    torch.manual_seed(seed)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    x = x[torch.randperm(len(x))]
    train, test = x[:1500], x[1500:]
    model = VAE()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        beta = min(1.0, epoch / 15)
        for batch in train[torch.randperm(len(train))].split(50):
            elbo, kl = model.elbo(batch, beta)
            opt.zero_grad()
            (-elbo).backward()
            opt.step()
        if epoch % 5 == 0:
            print(f"epoch {epoch:2d} beta {beta:.2f} -elbo {-elbo.item():.2f} kl {kl.item():.2f}")
    with torch.no_grad():
        return (torch.sigmoid(model.decoder(model.posterior(test).mean)) - test).pow(2).sum(1).mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    print("metric:", run(parser.parse_args().seed))
