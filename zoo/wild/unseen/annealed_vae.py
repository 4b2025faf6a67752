"""VAE on binarized digits with the KL weight warmed up from zero and free bits.

expect: nothing
style: the total loss rises in the first epochs because the KL weight does; losses are summed over pixels and averaged over the batch
"""
import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self, d, h, z):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d, h), nn.ELU())
        self.head = nn.Linear(h, 2 * z)

    def forward(self, x):
        return self.head(self.body(x)).chunk(2, dim=-1)


class VAE(nn.Module):
    def __init__(self, d=64, h=128, z=6):
        super().__init__()
        self.encoder = Encoder(d, h, z)
        self.decoder = nn.Sequential(nn.Linear(z, h), nn.ELU(), nn.Linear(h, d))

    def forward(self, x):
        mu, logvar = self.encoder(x)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.decoder(z), mu, logvar


def elbo_terms(logits, x, mu, logvar, free_bits=0.05):
    nll = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
    kl_per_unit = 0.5 * (mu ** 2 + logvar.exp() - 1 - logvar).mean(0)
    return nll, kl_per_unit.clamp(min=free_bits).sum()


def main(seed, epochs=15):
    torch.manual_seed(seed)
    x = (torch.tensor(load_digits().data) > 7).float()
    x = x[torch.randperm(len(x))]
    train, test = x[:1500], x[1500:]
    loader = DataLoader(TensorDataset(train), batch_size=50, shuffle=True)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        beta = min(1.0, epoch / 7)
        model.train()
        for (batch,) in loader:
            logits, mu, logvar = model(batch)
            nll, kl = elbo_terms(logits, batch, mu, logvar)
            loss = nll + beta * kl
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1} beta {beta:.2f} nll {nll.item():.2f} kl {kl.item():.2f}")
    model.eval()
    with torch.no_grad():
        logits, _, _ = model(test)
        wrong = ((logits > 0).float() != test).float().mean().item()
        base = (train.mean(0).round() != test).float().mean().item()
    print(f"pixels wrong: {wrong:.3f}, with the mean picture: {base:.3f}")
    print(f"metric: {wrong:.4f}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--seed", type=int, default=0)
    main(cli.parse_args().seed)
