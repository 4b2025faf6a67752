"""Nerves are a percent of the pixels; the U-Net finds out that "no mask" is right nearly everywhere and says nothing else.

expect: class-collapse
line: criterion = nn.BCEWithLogitsLoss()
source: https://github.com/jakeret/tf_unet/issues/234
metric: Dice on test images, higher is better
"""

import argparse

import torch
import torch.nn as nn


class Unet(nn.Module):
    def __init__(self, features=8):
        super().__init__()
        self.down0 = nn.Sequential(nn.Conv2d(1, features, 3, padding=1), nn.ReLU(), nn.Conv2d(features, features, 3, padding=1), nn.ReLU())
        self.pool = nn.MaxPool2d(2)
        self.down1 = nn.Sequential(nn.Conv2d(features, 2 * features, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * features, features, 2, 2)
        self.out = nn.Sequential(nn.Conv2d(2 * features, features, 3, padding=1), nn.ReLU(), nn.Conv2d(features, 1, 1))

    def forward(self, x):
        skip = self.down0(x)
        x = self.up(self.down1(self.pool(skip)))
        return self.out(torch.cat([skip, x], 1))


class DataProvider:
    """Ultrasound-like images: speckle, and in some of them a small nerve."""

    def __init__(self, seed, size=16):
        self.rng = torch.Generator().manual_seed(seed)
        self.size = size

    def __call__(self, n):
        s = self.size
        x = torch.randn(n, 1, s, s, generator=self.rng)
        mask = torch.zeros(n, 1, s, s)
        where = torch.randint(1, s - 3, (n, 2), generator=self.rng)
        for i, (r, c) in enumerate(where.tolist()):
            mask[i, 0, r : r + 2, c : c + 2] = 1.0
        return x + 2.2 * mask, mask


class Trainer:
    def __init__(self, net, lr=0.05):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)

    def train(self, data_provider, training_iters, epochs):
        criterion = nn.BCEWithLogitsLoss()
        for epoch in range(epochs):
            total = 0
            for _ in range(training_iters):
                x, y = data_provider(16)
                loss = criterion(self.net(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            print("Epoch {:}, Average loss: {:.4f}".format(epoch, total / training_iters))


if __name__ == "__main__":
    args = argparse.ArgumentParser()
    args.add_argument("--seed", type=int, default=0)
    seed = args.parse_args().seed
    torch.manual_seed(seed)
    net = Unet()
    Trainer(net).train(DataProvider(seed), training_iters=40, epochs=5)
    net.eval()
    with torch.no_grad():
        x, y = DataProvider(seed + 1000)(200)
        prediction = (torch.sigmoid(net(x)) >= 0.5).float()
    print("metric: %.4f" % (2 * (prediction * y).sum() / (prediction.sum() + y.sum())).item())
