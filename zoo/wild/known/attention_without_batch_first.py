"""Windows of an image go into nn.MultiheadAttention batch first, but it was made with the default layout: the batch attends to itself.

expect: samples-mixed
line: self.attn = nn.MultiheadAttention(
source: https://github.com/aipixel/AEMatter/issues/3
metric: test accuracy, higher is better
"""

import argparse

import torch
from torch import nn


class AEALBlock(nn.Module):
    def __init__(self, d_model, nhead):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attn = nn.MultiheadAttention(d_model, nhead, dropout=0.0)
        self.norm2 = nn.LayerNorm(d_model)
        self.mlp = nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.GELU(), nn.Linear(2 * d_model, d_model))

    def forward(self, src):
        # src: b, tokens, c
        x = self.norm1(src)
        src = src + self.attn(x, x, x)[0]
        return src + self.mlp(self.norm2(src))


class PatchModel(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.patch = nn.Linear(4, dim)
        self.pos = nn.Parameter(torch.randn(1, 9, dim) * 0.1)
        self.blocks = nn.Sequential(AEALBlock(dim, 2), AEALBlock(dim, 2))
        self.head = nn.Linear(dim, 2)

    def forward(self, img):
        b = img.shape[0]
        patches = img.reshape(b, 3, 2, 3, 2).permute(0, 1, 3, 2, 4).reshape(b, 9, 4)
        x = self.blocks(self.patch(patches) + self.pos)
        return self.head(x[:, 4])


def images(n):
    """6×6 noise. Label: is the corner brighter than the opposite corner? The middle patch has to answer."""
    img = torch.randn(n, 6, 6)
    y = (img[:, :2, :2].mean((1, 2)) > img[:, 4:, 4:].mean((1, 2))).long()
    return img, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--iters", default=350, type=int)
    opt = parser.parse_args()
    torch.manual_seed(opt.seed)

    net = PatchModel()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss()
    net.train()
    for it in range(opt.iters):
        img, y = images(48)
        loss = criterion(net(img), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 50 == 0:
            print("iter %d loss %.4f" % (it, loss.item()))

    net.eval()
    img, y = images(600)
    with torch.no_grad():
        acc = sum((net(i).argmax(1) == t).sum().item() for i, t in zip(img.split(48), y.split(48))) / 600
    print("metric: %.4f" % acc)


if __name__ == "__main__":
    main()
