"""A small encoder and decoder for segmentation; the encoder runs under no_grad by mistake.

expect: no-gradient
site: down
half: fresh
net: cnn
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=12, lr=2e-3, samples=600)


class Segmenter(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU())
        self.down2 = nn.Sequential(nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.head = nn.Conv2d(2 * width, 2, 1)

    def forward(self, x):
        with torch.no_grad():
            a = self.down1(x)
            b = self.down2(a)
        return self.head(torch.cat([a, torch.relu(self.up(b))], 1))


images, _, _, _ = digits(args.samples, image=True)
masks = (images[:, 0] > 0.3).long()
net = Segmenter(args.width)
optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    for x, m in loader(images, masks, batch=32):
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(net(x), m)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
