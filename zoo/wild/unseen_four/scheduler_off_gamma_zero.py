"""With the scheduler switched off, a StepLR with gamma=0 sets the learning rate to 0 after three epochs.

expect: scheduler-collapse
line: gamma=0, last_epoch=-1
source: https://github.com/LINCellularNeuroscience/VAME/issues/26
metric: test error of the reconstruction, lower is better
"""
import argparse
import math

import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader


class RNN_VAE(nn.Module):
    def __init__(self, features=4, hidden=32, latent=8, steps=15):
        super().__init__()
        self.steps = steps
        self.encoder = nn.GRU(features, hidden, batch_first=True)
        self.to_mean = nn.Linear(hidden, latent)
        self.to_logvar = nn.Linear(hidden, latent)
        self.decoder = nn.GRU(latent, hidden, batch_first=True)
        self.to_output = nn.Linear(hidden, features)

    def forward(self, x):
        h = self.encoder(x)[1][0]
        mean, logvar = self.to_mean(h), self.to_logvar(h)
        z = mean
        if self.training:
            z = mean + torch.randn_like(mean) * torch.exp(0.5 * logvar)
        out = self.decoder(z.unsqueeze(1).expand(-1, self.steps, -1))[0]
        return self.to_output(out), mean, logvar


def motion(n, steps=15):
    """Four joints of an animal that move with one rhythm and different phases."""
    t = torch.arange(steps).view(1, steps, 1)
    speed = 0.2 + 0.4 * torch.rand(n, 1, 1)
    phase = 2 * math.pi * torch.rand(n, 1, 1)
    joints = torch.arange(4).view(1, 1, 4) * 0.7
    height = 0.5 + torch.rand(n, 1, 1)
    return height * torch.sin(speed * t + phase + joints) + 0.05 * torch.randn(n, steps, 4)


def train_model(config):
    train_loader = DataLoader(motion(1600), batch_size=32, shuffle=True, drop_last=True)
    test_data = motion(300)
    model = RNN_VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate, amsgrad=True)

    if config.optimizer_scheduler:
        scheduler = StepLR(optimizer, step_size=3, gamma=0.2, last_epoch=-1)
    else:
        scheduler = StepLR(optimizer, step_size=3, gamma=0, last_epoch=-1)

    for epoch in range(1, config.epochs + 1):
        model.train()
        total = 0.0
        for x in train_loader:
            recon, mean, logvar = model(x)
            rec_loss = (recon - x).pow(2).sum((1, 2)).mean()
            kl = -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum(1).mean()
            loss = rec_loss + 0.1 * kl
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        print("Epoch: %d train loss: %.3f" % (epoch, total / len(train_loader)))

    model.eval()
    with torch.no_grad():
        return (model(test_data)[0] - test_data).pow(2).mean().item()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--epochs", type=int, default=14)
    ap.add_argument("--learning_rate", type=float, default=3e-3)
    ap.add_argument("--optimizer_scheduler", type=int, default=0)
    config = ap.parse_args()
    torch.manual_seed(config.seed)
    print("metric:", train_model(config))
