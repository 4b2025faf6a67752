"""The true masks are laid out as (width, height), the predicted ones as (height, width).

expect: target-misaligned
line: masks.permute(0, 3, 2, 1)
source: https://github.com/stelzner/monet/issues/1
metric: share of pixels given to the right slot, higher is better
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

SLOTS, SIZE = 3, 16


def scenes(n, g):
    """Two objects of different colour before a dark ground, with a mask for each."""
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    masks = torch.zeros(n, SLOTS, SIZE, SIZE)
    images = 0.35 * torch.randn(n, 3, SIZE, SIZE, generator=g)
    corner = torch.randint(0, 9, (n, 4), generator=g)
    for i, (r1, c1, r2, c2) in enumerate(corner.tolist()):
        first = (yy >= r1) & (yy < r1 + 4) & (xx >= c1) & (xx < c1 + 7)
        second = (yy >= r2) & (yy < r2 + 7) & (xx >= c2) & (xx < c2 + 4) & ~first
        masks[i, 1], masks[i, 2] = first.float(), second.float()
        images[i, 0] += first
        images[i, 1] += second
    masks[:, 0] = 1 - masks.sum(1)
    return images, masks


class AttentionNet(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.down = nn.Conv2d(3, width, 3, padding=1)
        self.mid = nn.Conv2d(width, width, 3, padding=1)
        self.up = nn.Conv2d(width, SLOTS, 1)

    def forward(self, x):
        x = F.relu(self.down(x))
        return self.up(F.relu(self.mid(x)))


class Monet(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = AttentionNet()

    def forward(self, x, masks):
        logits = self.attention(x)
        q_masks = masks.permute(0, 3, 2, 1)
        q_masks_recon = F.log_softmax(logits.permute(0, 2, 3, 1), dim=3)
        return F.kl_div(q_masks_recon, q_masks, reduction="sum") / len(x)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=8)
conf = parser.parse_args()
torch.manual_seed(conf.seed)
gen = torch.Generator().manual_seed(conf.seed)
images, masks = scenes(800, gen)
monet = Monet()
optimizer = torch.optim.RMSprop(monet.parameters(), lr=1e-3)
for epoch in range(conf.epochs):
    for idx in torch.randperm(len(images)).split(16):
        optimizer.zero_grad()
        loss = monet(images[idx], masks[idx])
        loss.backward()
        optimizer.step()
    print("[%d] loss: %.3f" % (epoch + 1, loss.item()))

images, masks = scenes(200, gen)
with torch.no_grad():
    slot = monet.attention(images).argmax(1)
truth = masks.argmax(1)
objects = truth > 0
print("metric:", (slot[objects] == truth[objects]).float().mean().item())
