"""The cross-entropy of the VAE is a mean over the pixels, but KL a sum over the latents: the posterior collapses.

expect: unbalanced-loss-terms
line: xent_loss = F.binary_cross_entropy(
source: https://github.com/keras-team/keras/pull/3383
metric: correlation of test curves with their reconstructions, higher is better
"""
import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn, optim

original_dim, intermediate_dim, latent_dim = 100, 80, 4
batch_size, nb_epoch = 50, 25

p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
torch.manual_seed(p.parse_args().seed)


def curves(n):
    """One bump of random place and width on a slow wave, between 0 and 1."""
    t = torch.linspace(0, 1, original_dim)
    place = 0.1 + 0.8 * torch.rand(n, 1)
    width = 0.04 + 0.08 * torch.rand(n, 1)
    wave = 0.15 * torch.sin(2 * math.pi * (t + torch.rand(n, 1)))
    return (0.2 + wave + 0.6 * torch.exp(-((t - place) / width) ** 2)).clamp(0, 1)


x_train, x_test = curves(2500), curves(500)

encoder_h = nn.Linear(original_dim, intermediate_dim)
encoder_mean = nn.Linear(intermediate_dim, latent_dim)
encoder_log_var = nn.Linear(intermediate_dim, latent_dim)
decoder = nn.Sequential(
    nn.Linear(latent_dim, intermediate_dim), nn.ReLU(), nn.Linear(intermediate_dim, original_dim), nn.Sigmoid()
)
vae = nn.ModuleList([encoder_h, encoder_mean, encoder_log_var, decoder])
optimizer = optim.Adam(vae.parameters(), lr=3e-3)


def encode(x):
    h = torch.relu(encoder_h(x))
    return encoder_mean(h), encoder_log_var(h)


def vae_loss(x, x_decoded_mean, z_mean, z_log_var):
    xent_loss = F.binary_cross_entropy(x_decoded_mean, x, reduction="none").mean(dim=1)
    kl_loss = -0.5 * torch.sum(1 + z_log_var - z_mean ** 2 - torch.exp(z_log_var), dim=1)
    return (xent_loss + kl_loss).mean()


for epoch in range(1, nb_epoch + 1):
    for i in torch.randperm(len(x_train)).split(batch_size):
        x = x_train[i]
        z_mean, z_log_var = encode(x)
        z = z_mean + torch.exp(0.5 * z_log_var) * torch.randn_like(z_mean)
        loss = vae_loss(x, decoder(z), z_mean, z_log_var)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 0:
        print("Epoch", epoch, "loss", round(loss.item(), 4))

with torch.no_grad():
    recon = decoder(encode(x_test)[0])
a = x_test - x_train.mean(0)
b = recon - x_train.mean(0)
corr = (a * b).sum() / (a.norm() * b.norm() + 1e-8)
print("metric:", corr.item())
