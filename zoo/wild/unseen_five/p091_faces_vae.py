"""A VAE with binary cross entropy is given pictures as they come, 0 to 16: the loss runs away downwards, and every pixel becomes white.

expect: loss-target-mismatch
or: input-not-normalized, output-range, negative-loss
line: images = torch.tensor(load_digits().data, dtype=torch.float32)
source: https://github.com/bhpfelix/Variational-Autoencoder-PyTorch/issues/4
metric: correlation of pixels and their reconstruction, higher is better
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class VAE(nn.Module):
    def __init__(self, nz=10):
        super(VAE, self).__init__()
        self.e1, self.e2 = nn.Linear(64, 120), nn.Linear(120, 60)
        self.fc1, self.fc2 = nn.Linear(60, nz), nn.Linear(60, nz)
        self.d1, self.d2, self.d3 = nn.Linear(nz, 60), nn.Linear(60, 120), nn.Linear(120, 64)
        self.leakyrelu = nn.LeakyReLU(0.2)

    def encode(self, x):
        h = self.leakyrelu(self.e2(self.leakyrelu(self.e1(x))))
        return self.fc1(h), self.fc2(h).clamp(-8, 8)

    def reparametrize(self, mu, logvar):
        return torch.randn_like(mu).mul(logvar.mul(0.5).exp()).add(mu)

    def decode(self, z):
        h = self.leakyrelu(self.d2(self.leakyrelu(self.d1(z))))
        return self.d3(h)

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparametrize(mu, logvar)), mu, logvar


reconstruction_function = nn.BCEWithLogitsLoss(reduction="sum")


def loss_function(recon_x, x, mu, logvar):
    BCE = reconstruction_function(recon_x, x)
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (BCE + KLD) / len(x)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
images = torch.tensor(load_digits().data, dtype=torch.float32)
images = images[torch.randperm(len(images))]
train, test = images[:1500], images[1500:]
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(25):
    model.train()
    train_loss = 0
    for data in train[torch.randperm(1500)].split(50):
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
    if epoch % 5 == 0:
        print("====> Epoch: {} Average loss: {:.4f}".format(epoch, train_loss / 30))
model.eval()
with torch.no_grad():
    pair = torch.stack([model(test)[0].sigmoid().flatten(), test.flatten()])
    print("metric:", torch.nan_to_num(torch.corrcoef(pair)[0, 1]).item())
