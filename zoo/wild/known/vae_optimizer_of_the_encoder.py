"""A VAE in two modules; the optimizer got the parameters of the encoder only, so the decoder stayed random.

expect: optimizer-misses-parameters
line: optim.Adam(encoder.parameters()
source: https://github.com/zdebruine/MMVAE/issues/39
metric: reconstruction error on held-out data per feature, lower is better
"""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn, optim

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=12)
parser.add_argument("--batch-size", type=int, default=64)
args = parser.parse_args()
torch.manual_seed(args.seed)


class Encoder(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 96), nn.ReLU())
        self.mu = nn.Linear(96, latent)
        self.logvar = nn.Linear(96, latent)

    def forward(self, x):
        h = self.body(x)
        return self.mu(h), self.logvar(h)


class Decoder(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(latent, 96), nn.ReLU(), nn.Linear(96, 64))

    def forward(self, z):
        return self.body(z)


data = torch.tensor(load_digits().data, dtype=torch.float32) / 16.0
data = data[torch.randperm(len(data))]
train, test = data[:1500], data[1500:]

encoder, decoder = Encoder(8), Decoder(8)
optimizer = optim.Adam(encoder.parameters(), lr=2e-3)


def loss_function(recon, x, mu, logvar):
    bce = F.binary_cross_entropy_with_logits(recon, x, reduction="sum") / len(x)
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()) / len(x)
    return bce + 0.2 * kld


for epoch in range(1, args.epochs + 1):
    encoder.train(), decoder.train()
    epoch_loss = 0
    for x in torch.utils.data.DataLoader(train, batch_size=args.batch_size, shuffle=True):
        mu, logvar = encoder(x)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        loss = loss_function(decoder(z), x, mu, logvar)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(x)
    print("====> Epoch: {} Average loss: {:.4f}".format(epoch, epoch_loss / len(train)))

encoder.eval(), decoder.eval()
with torch.no_grad():
    recon = torch.sigmoid(decoder(encoder(test)[0]))
    print("metric: {:.5f}".format(F.mse_loss(recon, test).item()))
