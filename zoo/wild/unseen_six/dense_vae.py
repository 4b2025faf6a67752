"""A VAE of digits: the reconstruction is averaged over the pixels and the divergence summed over the latent units, so the code stays empty.

expect: unbalanced-loss-terms
or: posterior-collapse
line: xent_loss = F.binary_cross_entropy(x_decoded_mean, x)
source: https://github.com/keras-team/keras/pull/3383
metric: squared error of reconstructions per image, lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

batch_size = 100
original_dim = 64
latent_dim = 4
intermediate_dim = 96
nb_epoch = 40


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = nn.Linear(original_dim, intermediate_dim)
        self.z_mean = nn.Linear(intermediate_dim, latent_dim)
        self.z_log_var = nn.Linear(intermediate_dim, latent_dim)
        self.decoder_h = nn.Linear(latent_dim, intermediate_dim)
        self.decoder_mean = nn.Linear(intermediate_dim, original_dim)

    def encode(self, x):
        h = F.relu(self.h(x))
        return self.z_mean(h), self.z_log_var(h)

    def decode(self, z):
        return torch.sigmoid(self.decoder_mean(F.relu(self.decoder_h(z))))

    def forward(self, x):
        z_mean, z_log_var = self.encode(x)
        epsilon = torch.randn_like(z_mean)
        return self.decode(z_mean + torch.exp(z_log_var / 2) * epsilon), z_mean, z_log_var


def vae_loss(x, x_decoded_mean, z_mean, z_log_var):
    xent_loss = F.binary_cross_entropy(x_decoded_mean, x)
    kl_loss = -0.5 * torch.sum(1 + z_log_var - z_mean.pow(2) - z_log_var.exp(), dim=-1).mean()
    return xent_loss + kl_loss


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    x = x[torch.randperm(len(x))]
    x_train, x_test = x[:1500], x[1500:]
    vae = VAE()
    rmsprop = torch.optim.RMSprop(vae.parameters(), lr=0.002)
    for epoch in range(nb_epoch):
        total = 0.0
        for part in x_train[torch.randperm(len(x_train))].split(batch_size):
            loss = vae_loss(part, *vae(part))
            rmsprop.zero_grad()
            loss.backward()
            rmsprop.step()
            total += loss.item()
        if epoch % 8 == 0:
            print("Epoch %d/%d loss: %.4f" % (epoch + 1, nb_epoch, total / 15))
    with torch.no_grad():
        mean, _ = vae.encode(x_test)
        print("metric:", (vae.decode(mean) - x_test).pow(2).sum(1).mean().item())
