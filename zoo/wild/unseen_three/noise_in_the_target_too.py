"""The denoising autoencoder takes its target after the noise was added: it learns to give the noise back.

expect: target-is-input
line: y = x.view(-1, 64)
source: https://github.com/keon/3-min-pytorch/issues/18
metric: test error against the clean images, lower is better
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
EPOCH = 20
BATCH_SIZE = 32
args = parser.parse_args()
torch.manual_seed(args.seed)

digits = torch.tensor(load_digits().images / 8.0 - 1.0, dtype=torch.float32)
digits = digits[torch.randperm(len(digits))]
trainset, testset = digits[:1500], digits[1500:]
train_loader = DataLoader(trainset, batch_size=BATCH_SIZE, shuffle=True)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 48), nn.ReLU())
        self.decoder = nn.Sequential(nn.Linear(48, 128), nn.ReLU(), nn.Linear(128, 64))

    def forward(self, x):
        encoded = self.encoder(x)
        return encoded, self.decoder(encoded)


def add_noise(img):
    return img + torch.randn_like(img) * 0.7


autoencoder = Autoencoder()
optimizer = optim.Adam(autoencoder.parameters(), lr=2e-3)
criterion = nn.MSELoss()


def train(autoencoder, train_loader):
    autoencoder.train()
    avg_loss = 0
    for x in train_loader:
        x = add_noise(x)
        x = x.view(-1, 64)
        y = x.view(-1, 64)

        encoded, decoded = autoencoder(x)
        loss = criterion(decoded, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        avg_loss += loss.item()
    return avg_loss / len(train_loader)


for epoch in range(1, EPOCH + 1):
    loss = train(autoencoder, train_loader)
    print("[Epoch {}] loss:{:.4f}".format(epoch, loss))

autoencoder.eval()
with torch.no_grad():
    clean = testset.view(-1, 64)
    _, restored = autoencoder(add_noise(clean))
print("metric:", criterion(restored, clean).item())
