"""A VAE whose reconstruction loss is a mean over pixels while its KL term is a sum: all digits come out as the same blur.

expect: unbalanced-loss-terms
line: recon = F.mse_loss(x_hat, x)
source: http://blog.shlomidom.com/Fixing-VAE-model-reconstructions
metric: squared error of a reconstructed pixel, lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class VAE(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, 128), nn.ReLU())
        self.mu, self.logvar = nn.Linear(128, latent), nn.Linear(128, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 128), nn.ReLU(), nn.Linear(128, 64), nn.Sigmoid())

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.dec(z), mu, logvar


def vae_loss(x_hat, x, mu, logvar):
    recon = F.mse_loss(x_hat, x)
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()) / len(x)
    return recon + kl, recon, kl


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
data = torch.tensor(load_digits().data, dtype=torch.float32) / 16
data = data[torch.randperm(len(data))]
train, test = data[:1500], data[1500:]
model = VAE()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(40):
    sums = torch.zeros(3)
    for x in train[torch.randperm(len(train))].split(64):
        loss, recon, kl = vae_loss(*((out := model(x))[0], x, *out[1:]))
        opt.zero_grad()
        loss.backward()
        opt.step()
        sums += torch.tensor([loss.item(), recon.item(), kl.item()]) * len(x)
    if epoch % 8 == 0:
        print("epoch %d  loss %.4f  recon %.4f  kl %.4f" % (epoch, *(sums / len(train))))
model.eval()
with torch.no_grad():
    print("metric:", F.mse_loss(model(test)[0], test).item())
