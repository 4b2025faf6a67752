"""The KL term is a sum over batch and latents, the reconstruction a mean over everything: KL drowns it.

expect: unbalanced-loss-terms
line: kl = -0.5 * torch.sum(
source: https://github.com/zdebruine/MMVAE/pull/19
metric: test reconstruction error per pixel, lower is better
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader


class VAE(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.LeakyReLU(), nn.Linear(96, 48), nn.LeakyReLU())
        self.fc_mu = nn.Linear(48, latent)
        self.fc_var = nn.Linear(48, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, 48), nn.LeakyReLU(), nn.Linear(48, 96), nn.LeakyReLU(), nn.Linear(96, 64)
        )

    def reparameterize(self, mu, logvar):
        if not self.training:
            return mu
        return mu + torch.randn_like(mu) * (0.5 * logvar).exp()

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.fc_mu(h), self.fc_var(h)
        return self.decoder(self.reparameterize(mu, logvar)), mu, logvar


class Trainer:
    def __init__(self, model, train, test, lr=2e-3):
        self.model, self.test = model, test
        self.loader = DataLoader(train, batch_size=32, shuffle=True)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def loss(self, x):
        predicted, mu, logvar = self.model(x)
        recon = F.mse_loss(predicted, x)
        kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return recon + kl, recon, kl

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            for x in self.loader:
                self.optimizer.zero_grad()
                loss, recon, kl = self.loss(x)
                loss.backward()
                self.optimizer.step()
            print(f"epoch {epoch} recon {recon.item():.4f} kl {kl.item():.4f} test {self.evaluate():.4f}")

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        return F.mse_loss(self.model(self.test)[0], self.test).item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    x = torch.tensor(load_digits().data, dtype=torch.float32)
    x = (x - x.mean()) / x.std()
    x = x[torch.randperm(len(x))]
    trainer = Trainer(VAE(), x[:1500], x[1500:])
    trainer.fit(20)
    print("metric:", trainer.evaluate())
