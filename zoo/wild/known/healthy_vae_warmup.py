"""A VAE whose KL weight is warmed up over the first epochs, both terms summed over pixels and averaged over the batch.

expect: nothing
style: VAE, BCE + beta * KLD with beta rising, total loss rises while beta does (looks like divergence)
"""

import argparse

import torch
import torch.utils.data
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.nn import functional as F

parser = argparse.ArgumentParser(description="VAE digits")
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--epochs", type=int, default=14)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

images = torch.tensor(load_digits().data, dtype=torch.float32) / 16.0
images = images[torch.randperm(len(images))]
train_loader = torch.utils.data.DataLoader(images[:1500], batch_size=args.batch_size, shuffle=True)
test_images = images[1500:]


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(64, 96)
        self.fc21 = nn.Linear(96, 8)
        self.fc22 = nn.Linear(96, 8)
        self.fc3 = nn.Linear(8, 96)
        self.fc4 = nn.Linear(96, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        return mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)

    def decode(self, z):
        return self.fc4(F.relu(self.fc3(z)))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=2e-3)


def loss_function(recon_x, x, mu, logvar, beta):
    BCE = F.binary_cross_entropy_with_logits(recon_x, x, reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (BCE + beta * KLD) / len(x)


for epoch in range(1, args.epochs + 1):
    model.train()
    beta = min(1.0, epoch / 8)
    train_loss = 0
    for data in train_loader:
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar, beta)
        loss.backward()
        train_loss += loss.item() * len(data)
        optimizer.step()
    print("====> Epoch: {} beta {:.2f} Average loss: {:.4f}".format(epoch, beta, train_loss / 1500))

model.eval()
with torch.no_grad():
    mu, _ = model.encode(test_images)
    error = F.mse_loss(torch.sigmoid(model.decode(mu)), test_images) / test_images.var(0).mean()
print("metric: {:.4f}".format(error.item()))
