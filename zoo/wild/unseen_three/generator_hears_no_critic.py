"""The discriminator sees fake.detach() in the generator's own step too: no gradient ever reaches the generator.

expect: no-gradient
line: self.critic(fake.detach(), labels), self.real_target(n))
source: https://github.com/nikhilsinghmus/image2reverb/issues/37
metric: distance of generated to real means, lower is better
"""

import argparse

import torch
import torch.nn as nn


def real_batch(n):
    """Decay curves of three kinds of room."""
    kind = torch.randint(0, 3, (n,))
    rate = torch.tensor([0.2, 0.5, 1.0])[kind].unsqueeze(1)
    t = torch.arange(16).float().unsqueeze(0)
    return torch.exp(-rate * t) * 2 - 1 + 0.05 * torch.randn(n, 16), kind


class Conditional(nn.Module):
    def __init__(self, inputs, outputs, last=None):
        super().__init__()
        self.label = nn.Embedding(3, 8)
        layers = [nn.Linear(inputs + 8, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, outputs)]
        self.net = nn.Sequential(*layers, *([last] if last else []))

    def forward(self, x, kind):
        return self.net(torch.cat([x, self.label(kind)], dim=1))


class GANTrainer:
    def __init__(self, noise=8, lr=1e-3):
        self.noise = noise
        self.generator = Conditional(noise, 16)
        self.critic = Conditional(16, 1)
        self.opt_g = torch.optim.Adam(self.generator.parameters(), lr=lr, betas=(0.5, 0.999))
        self.opt_d = torch.optim.Adam(self.critic.parameters(), lr=lr, betas=(0.5, 0.999))
        self.loss = nn.MSELoss()

    def real_target(self, n):
        return torch.ones(n, 1)

    def step(self, real, labels):
        n = len(real)
        fake = self.generator(torch.randn(n, self.noise), labels)

        d_loss = self.loss(self.critic(real, labels), self.real_target(n))
        d_loss = d_loss + self.loss(self.critic(fake.detach(), labels), torch.zeros(n, 1))
        self.opt_d.zero_grad()
        d_loss.backward()
        self.opt_d.step()

        g_loss = self.loss(self.critic(fake.detach(), labels), self.real_target(n))
        self.opt_g.zero_grad()
        g_loss.backward()
        self.opt_g.step()
        return d_loss.item(), g_loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    trainer = GANTrainer()
    for step in range(args.steps):
        d_loss, g_loss = trainer.step(*real_batch(64))
        if step % 200 == 0:
            print(f"step {step}: D {d_loss:.3f} G {g_loss:.3f}")

    real, labels = real_batch(3000)
    with torch.no_grad():
        fake = trainer.generator(torch.randn(3000, trainer.noise), labels)
    gaps = [(fake[labels == k].mean(0) - real[labels == k].mean(0)).abs().mean() for k in range(3)]
    print("metric:", torch.stack(gaps).mean().item())


if __name__ == "__main__":
    main()
