"""Variational auto-encoder on 8x8 digits, Bernoulli likelihood summed over pixels, KL warm-up.

expect: nothing
style: the pytorch/examples VAE manner: target is the input on purpose, reduction="sum", ELBO per sample
"""
from __future__ import print_function

import argparse

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="VAE")
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--epochs", type=int, default=30)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

x, _ = load_digits(return_X_y=True)
x = torch.tensor(x, dtype=torch.float32) / 16.0
x_train, x_test = train_test_split(x, test_size=300, random_state=args.seed)
train_loader = DataLoader(TensorDataset(x_train), batch_size=args.batch_size, shuffle=True)
test_loader = DataLoader(TensorDataset(x_test), batch_size=args.batch_size, shuffle=False)


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(64, 128)
        self.fc21 = nn.Linear(128, 8)
        self.fc22 = nn.Linear(128, 8)
        self.fc3 = nn.Linear(8, 128)
        self.fc4 = nn.Linear(128, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-3)


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE, KLD


def train(epoch):
    model.train()
    beta = min(1.0, epoch / 5)
    train_loss = 0
    for (data,) in train_loader:
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        bce, kld = loss_function(recon_batch, data, mu, logvar)
        loss = bce + beta * kld
        loss.backward()
        train_loss += (bce + kld).item()
        optimizer.step()
    print("====> Epoch: {} Average loss: {:.4f}".format(epoch, train_loss / len(train_loader.dataset)))


def test(epoch):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for (data,) in test_loader:
            recon_batch, mu, logvar = model(data)
            test_loss += sum(loss_function(recon_batch, data, mu, logvar)).item()
    test_loss /= len(test_loader.dataset)
    print("====> Test set loss: {:.4f}".format(test_loss))
    return test_loss


if __name__ == "__main__":
    for epoch in range(1, args.epochs + 1):
        train(epoch)
        if epoch % 5 == 0:
            test_loss = test(epoch)
    with torch.no_grad():
        sample = model.decode(torch.randn(64, 8))
    nearest = torch.cdist(sample, x_train).min(1).values.mean().item()
    print("distance of samples to the nearest digit %.3f" % nearest)
    print("metric: %.4f" % test_loss)
