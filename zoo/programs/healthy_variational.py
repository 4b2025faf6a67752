"""A variational autoencoder: two terms, one of them close to zero at first.

expect: nothing
half: first
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=64, lr=3e-3, samples=1000)


class VAE(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, width), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(width, 6), nn.Linear(width, 6)
        self.decoder = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 64))

    def forward(self, x):
        h = self.encoder(x)
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(z), mean, log_variance


x, *_ = digits(args.samples)
model = VAE(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(8):
    for (batch,) in loader(x):
        rebuilt, mean, log_variance = model(batch)
        error = nn.functional.mse_loss(rebuilt, batch, reduction="sum") / len(batch)
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum() / len(batch)
        loss = error + divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
