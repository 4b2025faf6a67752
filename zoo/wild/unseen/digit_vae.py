"""Variational autoencoder on the small digits; reconstruction was averaged over all pixels and the KL summed over batch and code, the KL fell to zero in a few steps and every digit came back as the same grey blur.

expect: unbalanced-loss-terms
line: kld = -0.5 * torch.sum(
source: https://github.com/zdebruine/MMVAE/pull/19
metric: share of the pixel variance that the reconstruction explains, higher is better
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class VAE(nn.Module):
    def __init__(self, dim=64, hidden=128, code=8):
        super().__init__()
        self.enc = nn.Linear(dim, hidden)
        self.mu = nn.Linear(hidden, code)
        self.logvar = nn.Linear(hidden, code)
        self.dec1 = nn.Linear(code, hidden)
        self.dec2 = nn.Linear(hidden, dim)

    def encode(self, x):
        h = F.relu(self.enc(x))
        return self.mu(h), self.logvar(h)

    def decode(self, z):
        return self.dec2(F.relu(self.dec1(z)))

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.decode(z), mu, logvar


def loss_function(predicted, target, mu, logvar):
    recon = F.mse_loss(predicted, target)
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return recon + kld, recon, kld


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    x = (x - x.mean()) / x.std()
    x = x[torch.randperm(len(x))]
    train, test = x[:1500], x[1500:]

    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(16):
        for idx in torch.randperm(len(train)).split(64):
            batch = train[idx]
            predicted, mu, logvar = model(batch)
            loss, recon, kld = loss_function(predicted, batch, mu, logvar)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1}: recon {recon.item():.4f} kl {kld.item():.4f}")

    with torch.no_grad():
        mu, _ = model.encode(test)
        error = F.mse_loss(model.decode(mu), test)
        explained = 1 - error / (test - train.mean(0)).pow(2).mean()
    print(f"metric: {explained.item():.4f}")


if __name__ == "__main__":
    main()
