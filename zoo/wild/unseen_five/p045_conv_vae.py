"""A convolutional VAE: the data module maps pictures to -1..1, and the decoder ends in a sigmoid.

expect: output-range
line: nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Sigmoid(),
source: https://whosebug.com/question/5616116/What-could-cause-a-VAE-Variational-AutoEncoder-to-output-random-noise-even-after-training
metric: squared error of a reconstructed pixel, lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class ShapesDataModule:
    """Discs of random size and place, 16 x 16."""

    mean, std = 0.5, 0.5

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        c = 4 + 8 * torch.rand(n, 2, generator=g)
        r = 2 + 3 * torch.rand(n, 1, 1, generator=g)
        yy, xx = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
        d = ((yy - c[:, 0, None, None]) ** 2 + (xx - c[:, 1, None, None]) ** 2).sqrt()
        self.images = torch.sigmoid(2 * (r - d)).unsqueeze(1)

    def batches(self, size):
        for idx in torch.randperm(len(self.images)).split(size):
            yield (self.images[idx] - self.mean) / self.std


class VAE(nn.Module):
    def __init__(self, z=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 4, 2, 1), nn.ReLU(), nn.Flatten())
        self.mu, self.log_var = nn.Linear(512, z), nn.Linear(512, z)
        self.unflatten = nn.Linear(z, 512)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(),
            nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Sigmoid(),
        )

    def forward(self, x):
        h = self.encoder(x)
        mu, log_var = self.mu(h), self.log_var(h)
        z = mu + torch.exp(log_var / 2) * torch.randn_like(mu)
        return self.decoder(F.relu(self.unflatten(z)).view(-1, 32, 4, 4)), mu, log_var

    def loss(self, predictions, targets, mu, log_var):
        r_loss = F.mse_loss(predictions, targets, reduction="sum") / len(targets)
        kl_loss = -0.5 * (1 + log_var - mu**2 - log_var.exp()).sum(1).mean()
        return r_loss + 0.5 * kl_loss


def main(seed, epochs=10):
    torch.manual_seed(seed)
    train, val = ShapesDataModule(1200, seed), ShapesDataModule(300, seed + 99)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        for batch in train.batches(48):
            out, mu, log_var = model(batch)
            loss = model.loss(out, batch, mu, log_var)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch %d train_loss %.3f" % (epoch, loss.item()))
    model.eval()
    with torch.no_grad():
        batch = next(val.batches(300))
        print("metric:", F.mse_loss(model(batch)[0], batch).item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args().seed)
