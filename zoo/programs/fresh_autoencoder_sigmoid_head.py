"""An autoencoder that ends in a sigmoid, of images that were standardised.

expect: output-range
half: fresh
net: autoencoder
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=32, lr=3e-3, samples=800)


class AutoEncoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 8))
        self.decoder = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 64))

    def forward(self, x):
        return torch.sigmoid(self.decoder(self.encoder(x.flatten(1)))).view_as(x)


x, _, _, _ = digits(args.samples, image=True)
model = AutoEncoder(args.width)
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.MSELoss()
for epoch in range(6):
    for (a,) in loader(x, batch=32):
        opt.zero_grad()
        loss = criterion(model(a), a)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
