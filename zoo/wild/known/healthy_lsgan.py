"""Least-squares GAN that draws 8×8 digits of one class, with batch norm in the generator.

expect: nothing
style: LSGAN with convolutions, gradients of both nets accumulate over two half batches
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


def weights_init_normal(m):
    if isinstance(m, (nn.Conv2d, nn.Linear)):
        nn.init.normal_(m.weight, 0.0, 0.05)


class Generator(nn.Module):
    def __init__(self, latent=16):
        super().__init__()
        self.l1 = nn.Linear(latent, 16 * 4)
        self.blocks = nn.Sequential(
            nn.BatchNorm2d(16), nn.Upsample(scale_factor=2), nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.LeakyReLU(0.2),
            nn.Upsample(scale_factor=2), nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.LeakyReLU(0.2),
            nn.Conv2d(16, 1, 3, padding=1), nn.Tanh(),
        )

    def forward(self, z):
        return self.blocks(self.l1(z).view(-1, 16, 2, 2))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.LeakyReLU(0.2), nn.Dropout2d(0.1), nn.Conv2d(16, 32, 3, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(128, 1)
        )

    def forward(self, img):
        return self.model(img)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    opt = parser.parse_args()
    torch.manual_seed(opt.seed)
    digits = load_digits()
    threes = torch.tensor(digits.images[digits.target == 3], dtype=torch.float32).unsqueeze(1) / 8.0 - 1.0

    g, d = Generator(), Discriminator()
    g.apply(weights_init_normal)
    d.apply(weights_init_normal)
    optimizer_G = torch.optim.Adam(g.parameters(), lr=1e-3, betas=(0.5, 0.999))
    optimizer_D = torch.optim.Adam(d.parameters(), lr=1e-3, betas=(0.5, 0.999))
    mse = nn.MSELoss()
    first = None
    for i in range(180):
        optimizer_G.zero_grad()
        for _ in range(2):
            g_loss = 0.5 * mse(d(g(torch.randn(16, 16))), torch.ones(16, 1))
            g_loss.backward()
        optimizer_G.step()
        optimizer_D.zero_grad()
        for _ in range(2):
            real = threes[torch.randint(len(threes), (16,))]
            with torch.no_grad():
                fake = g(torch.randn(16, 16))
            d_loss = 0.25 * (mse(d(real), torch.ones(16, 1)) + mse(d(fake), torch.zeros(16, 1)))
            d_loss.backward()
        optimizer_D.step()
        if i % 40 == 0:
            print("[Batch %d] [D loss: %f] [G loss: %f]" % (i, d_loss.item(), g_loss.item()))
        if i in (0, 179):
            g.eval()
            with torch.no_grad():
                error = (g(torch.randn(200, 16)).mean(0) - threes.mean(0)).abs().mean().item()
            g.train()
            first = first or error
    print("metric: %.4f (started at %.4f)" % (error, first))


if __name__ == "__main__":
    main()
