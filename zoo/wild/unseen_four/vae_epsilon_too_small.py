"""The 1e-10 in the log vanishes beside 1 in float32: as soon as a pixel saturates, log(0) gives NaN.

expect: non-finite
line: torch.log(1e-10 + 1 - x_reconstr_mean)
source: https://github.com/iusaspb/deep_learning_Nikolenko_and_Co/issues/1
metric: share of test pixels that are right, higher is better
"""
import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class VariationalAutoencoder:
    def __init__(self, n_input=64, n_hidden=128, n_z=8, learning_rate=0.005):
        self.encoder = nn.Sequential(nn.Linear(n_input, n_hidden), nn.ReLU(), nn.Linear(n_hidden, 2 * n_z))
        self.decoder = nn.Sequential(
            nn.Linear(n_z, n_hidden), nn.ReLU(), nn.Linear(n_hidden, n_input), nn.Sigmoid()
        )
        params = list(self.encoder.parameters()) + list(self.decoder.parameters())
        self.optimizer = torch.optim.Adam(params, lr=learning_rate)

    def loss(self, x):
        z_mean, z_log_sigma_sq = self.encoder(x).chunk(2, 1)
        z = z_mean + torch.randn_like(z_mean) * torch.exp(0.5 * z_log_sigma_sq)
        x_reconstr_mean = self.decoder(z)
        reconstr_loss = -torch.sum(
            x * torch.log(1e-10 + x_reconstr_mean)
            + (1 - x) * torch.log(1e-10 + 1 - x_reconstr_mean), 1
        )
        latent_loss = -0.5 * torch.sum(1 + z_log_sigma_sq - z_mean ** 2 - torch.exp(z_log_sigma_sq), 1)
        return torch.mean(reconstr_loss + latent_loss)

    def partial_fit(self, x):
        cost = self.loss(x)
        self.optimizer.zero_grad()
        cost.backward()
        self.optimizer.step()
        return cost.item()

    @torch.no_grad()
    def reconstruct(self, x):
        return self.decoder(self.encoder(x).chunk(2, 1)[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x = torch.tensor(load_digits().data, dtype=torch.float32)
    x = (x > 6).float()
    x = torch.cat([x.view(-1, 8, 8)[:, :, 1:7], torch.ones(len(x), 8, 2)], 2).flatten(1)
    x = x[torch.randperm(len(x))]
    train, test = x[:1500], x[1500:]
    vae = VariationalAutoencoder()
    for epoch in range(40):
        total = 0.0
        batches = torch.randperm(len(train)).split(50)
        for idx in batches:
            total += vae.partial_fit(train[idx])
        if epoch % 5 == 0:
            print("Epoch:", "%04d" % (epoch + 1), "cost=", "{:.9f}".format(total / len(batches)))
    right = (vae.reconstruct(test) > 0.5) == (test > 0.5)
    print("metric:", right.float().mean().item())
