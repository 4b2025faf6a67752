"""Segmentation with a void border of 255 that is ignored, class weights, and a polynomial decay of the rate to zero.

expect: nothing
metric: mean IoU on test images, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn


def scenes(n, rng):
    """Background, discs and squares; a border of two pixels and the edges of objects are void."""
    image = rng.normal(0, 0.35, (n, 1, 20, 20)).astype(np.float32)
    label = np.zeros((n, 20, 20), dtype=np.int64)
    yy, xx = np.mgrid[:20, :20]
    for i in range(n):
        cy, cx, r = rng.uniform(5, 15, 2).tolist() + [rng.uniform(3, 5)]
        if rng.random() < 0.5:
            d, kind = np.hypot(yy - cy, xx - cx), 1
        else:
            d, kind = np.maximum(abs(yy - cy), abs(xx - cx)), 2
        image[i, 0] += (0.6 + 0.4 * kind) * (d < r)
        label[i][d < r] = kind
        label[i][abs(d - r) < 0.5] = 255
    label[:, :2] = label[:, -2:] = label[:, :, :2] = label[:, :, -2:] = 255
    return torch.from_numpy(image), torch.from_numpy(label)


class ContextNet(nn.Module):
    def __init__(self):
        super().__init__()
        layers, width = [], 1
        for dilation in (1, 1, 2, 4):
            layers += [nn.Conv2d(width, 20, 3, padding=dilation, dilation=dilation), nn.GroupNorm(4, 20), nn.ReLU()]
            width = 20
        self.body = nn.Sequential(*layers)
        self.score = nn.Conv2d(20, 3, 1)

    def forward(self, x):
        return self.score(self.body(x))


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
torch.manual_seed(seed)
rng = np.random.default_rng(seed)
x, y = scenes(500, rng)
net = ContextNet()
criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.5, 1.5, 1.5]), ignore_index=255)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
max_iter = 8 * 31
scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, max_iter, power=0.9)
for epoch in range(8):
    net.train()
    for rows in torch.randperm(500)[:496].view(-1, 16):
        loss = criterion(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    print(f"epoch {epoch} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.4f}")
net.eval()
x, y = scenes(100, rng)
with torch.no_grad():
    guess = net(x).argmax(1)
valid = y != 255
iou = [((guess == c) & (y == c) & valid).sum() / ((guess == c) | (y == c))[valid].sum() for c in range(3)]
print("metric:", float(np.mean(iou)))
