"""The KL term adds the log of sigma where it must subtract it: it has no floor, and sigma is driven to zero.

expect: kl-wrong-sign
or: negative-loss
line: sigma ** 2 + mu ** 2 - 1.0 + 2.0 * log_sigma
source: https://github.com/FluxML/model-zoo/pull/147
metric: test negative evidence lower bound per image, lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class VAE(nn.Module):
    def __init__(self, pixels=64, hidden=96, latent=6):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(pixels, hidden), nn.Tanh())
        self.to_mu = nn.Linear(hidden, latent)
        self.to_log_sigma = nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.Tanh(), nn.Linear(hidden, pixels))

    def encode(self, x):
        h = self.features(x)
        return self.to_mu(h), self.to_log_sigma(h)

    def forward(self, x):
        mu, log_sigma = self.encode(x)
        z = mu + torch.randn_like(mu) * log_sigma.exp()
        return self.decoder(z), mu, log_sigma


def reconstruction(logits, x):
    return F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1)


def divergence(mu, log_sigma):
    sigma = log_sigma.exp()
    return 0.5 * (sigma ** 2 + mu ** 2 - 1.0 + 2.0 * log_sigma).sum(1)


@torch.no_grad()
def negative_elbo(model, x):
    model.eval()
    logits, mu, log_sigma = model(x)
    posterior = torch.distributions.Normal(mu, log_sigma.exp().clamp_min(1e-12))
    prior = torch.distributions.Normal(torch.zeros_like(mu), torch.ones_like(mu))
    kl = torch.distributions.kl_divergence(posterior, prior).sum(1)
    return (reconstruction(logits, x) + kl).mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=25)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
    x = x[torch.randperm(len(x))]
    train, test = x[:1500], x[1500:]
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        model.train()
        for batch in train[torch.randperm(len(train))].split(50):
            logits, mu, log_sigma = model(batch)
            loss = (reconstruction(logits, batch) + divergence(mu, log_sigma)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f}")

    print("metric:", negative_elbo(model, test))


if __name__ == "__main__":
    main()
