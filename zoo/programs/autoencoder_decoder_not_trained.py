"""An autoencoder whose optimizer was given the encoder alone.

expect: optimizer-misses-parameters
site: decoder
half: second
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=64, lr=2e-3, samples=900)


class AutoEncoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
        self.decoder = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, 64))

    def forward(self, x):
        return self.decoder(self.encoder(x))


net = AutoEncoder(args.width)
optimizer = torch.optim.Adam(net.encoder.parameters(), lr=args.lr)
criterion = nn.MSELoss()
x, *_ = digits(args.samples)
for epoch in range(6):
    for (batch,) in loader(x, batch=32):
        optimizer.zero_grad()
        loss = criterion(net(batch), batch)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
