# A GAN: two models, two optimizers, a pass of one through the other.
import torch
from torch import nn

from utils import checksum

torch.manual_seed(3)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 2))

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


generator, discriminator = Generator(), Discriminator()
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
fixed = torch.randn(8, 4)

for step in range(12):
    angle = torch.rand(32) * 6.2832
    real = torch.stack([angle.cos(), angle.sin()], dim=1)

    opt_d.zero_grad()
    fake = generator(torch.randn(32, 4))
    loss_real = bce(discriminator(real), torch.ones(32))
    loss_fake = bce(discriminator(fake.detach()), torch.zeros(32))
    (loss_real + loss_fake).backward()
    opt_d.step()

    opt_g.zero_grad()
    loss_g = bce(discriminator(fake), torch.ones(32))
    loss_g.backward()
    opt_g.step()

    if step % 4 == 0:
        with torch.no_grad():
            spread = generator(fixed).std().item()
        print(
            f"{step}: D {(loss_real + loss_fake).item():.6f} G {loss_g.item():.6f} ({spread:.4f})"
        )

print("weights", checksum(generator, discriminator))
