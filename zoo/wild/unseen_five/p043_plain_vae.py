"""The decoder of a VAE ends in a ReLU while the pictures are normalised to mean zero: it cannot draw anything below it.

expect: output-range
line: return F.relu(self.linear2(x))
source: https://github.com/ethanluoyc/pytorch-vae/issues/3
metric: squared error of a reconstructed pixel, lower is better
"""

import argparse

import torch
import torch.nn.functional as F
import torch.optim as optim
from sklearn.datasets import load_digits


class Encoder(torch.nn.Module):
    def __init__(self, D_in, H, D_out):
        super(Encoder, self).__init__()
        self.linear1 = torch.nn.Linear(D_in, H)
        self.linear2 = torch.nn.Linear(H, D_out)

    def forward(self, x):
        x = F.relu(self.linear1(x))
        return F.relu(self.linear2(x))


class Decoder(torch.nn.Module):
    def __init__(self, D_in, H, D_out):
        super(Decoder, self).__init__()
        self.linear1 = torch.nn.Linear(D_in, H)
        self.linear2 = torch.nn.Linear(H, D_out)

    def forward(self, z):
        x = F.relu(self.linear1(z))
        return F.relu(self.linear2(x))


class VAE(torch.nn.Module):
    latent_dim = 8

    def __init__(self, encoder, decoder):
        super(VAE, self).__init__()
        self.encoder = encoder
        self.decoder = decoder
        self._enc_mu = torch.nn.Linear(100, 8)
        self._enc_log_sigma = torch.nn.Linear(100, 8)

    def forward(self, state):
        h_enc = self.encoder(state)
        mu, log_sigma = self._enc_mu(h_enc), self._enc_log_sigma(h_enc)
        sigma = torch.exp(log_sigma)
        self.z_mean, self.z_sigma = mu, sigma
        return self.decoder(mu + sigma * torch.randn_like(sigma))


def latent_loss(z_mean, z_stddev):
    mean_sq, stddev_sq = z_mean * z_mean, z_stddev * z_stddev
    return 0.5 * (mean_sq + stddev_sq - torch.log(stddev_sq) - 1).sum(1).mean()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    pictures = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    pictures = (pictures - 0.5) / 0.5
    test, train = pictures[:300], pictures[300:]

    vae = VAE(Encoder(64, 100, 100), Decoder(8, 100, 64))
    optimizer = optim.Adam(vae.parameters(), lr=0.001)
    for epoch in range(30):
        for inputs in train[torch.randperm(len(train))].split(64):
            optimizer.zero_grad()
            dec = vae(inputs)
            ll = 0.1 * latent_loss(vae.z_mean, vae.z_sigma)
            loss = F.mse_loss(dec, inputs, reduction="none").sum(1).mean() + ll
            loss.backward()
            optimizer.step()
        if epoch % 5 == 0:
            print(epoch, loss.item())
    with torch.no_grad():
        print("metric:", F.mse_loss(vae(test), test).item())
