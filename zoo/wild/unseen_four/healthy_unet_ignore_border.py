"""Small U-Net segments discs and squares; border pixels carry the label 255 and are ignored on purpose.

expect: nothing
style: ignore_index=255, cross entropy plus Dice, class weights for the rare shapes, poly learning-rate decay, mean IoU
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

VOID = 255


class Shapes(Dataset):
    def __init__(self, n, seed, train):
        rng = np.random.default_rng(seed)
        self.train, self.items = train, [self.draw(rng) for _ in range(n)]

    @staticmethod
    def draw(rng, size=32):
        yy, xx = np.mgrid[:size, :size]
        img = rng.normal(0.4, 0.1, (size, size)) + rng.uniform(-0.1, 0.1)
        mask = np.zeros((size, size), np.int64)
        for kind in rng.permutation([1, 2])[: rng.integers(1, 3)]:
            cy, cx, r = rng.integers(7, 25), rng.integers(7, 25), rng.integers(4, 7)
            dist = np.hypot(yy - cy, xx - cx) if kind == 1 else np.maximum(abs(yy - cy), abs(xx - cx))
            mask[dist <= r + 1] = VOID
            mask[dist <= r - 1] = kind
            img[dist <= r] += 0.35
        return img.astype(np.float32)[None], mask

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        img, mask = self.items[i]
        img, mask = torch.from_numpy((img - 0.45) / 0.2), torch.from_numpy(mask)
        if self.train and torch.rand(()) < 0.5:
            img, mask = img.flip(-1), mask.flip(-1)
        if self.train and torch.rand(()) < 0.5:
            img, mask = img.flip(-2), mask.flip(-2)
        return img, mask


class DoubleConv(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(
            nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
            nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, n_classes=3, c=8):
        super().__init__()
        self.inc, self.down1, self.down2 = DoubleConv(1, c), DoubleConv(c, 2 * c), DoubleConv(2 * c, 4 * c)
        self.up1, self.up2 = nn.ConvTranspose2d(4 * c, 2 * c, 2, 2), nn.ConvTranspose2d(2 * c, c, 2, 2)
        self.dec1, self.dec2 = DoubleConv(4 * c, 2 * c), DoubleConv(2 * c, c)
        self.outc = nn.Conv2d(c, n_classes, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(F.max_pool2d(x1, 2))
        x3 = self.down2(F.max_pool2d(x2, 2))
        x = self.dec1(torch.cat([x2, self.up1(x3)], 1))
        return self.outc(self.dec2(torch.cat([x1, self.up2(x)], 1)))


def dice_loss(logits, target, n_classes=3):
    valid = (target != VOID)[:, None].float()
    onehot = F.one_hot(target.where(target != VOID, torch.zeros_like(target)), n_classes).permute(0, 3, 1, 2).float()
    prob = logits.softmax(1) * valid
    onehot = onehot * valid
    inter = (prob * onehot).sum((0, 2, 3))
    return 1 - ((2 * inter + 1) / (prob.sum((0, 2, 3)) + onehot.sum((0, 2, 3)) + 1)).mean()


@torch.no_grad()
def mean_iou(model, loader):
    model.eval()
    conf = torch.zeros(3, 3)
    for img, mask in loader:
        pred = model(img).argmax(1)
        keep = mask != VOID
        conf += torch.bincount(mask[keep] * 3 + pred[keep], minlength=9).view(3, 3)
    return (conf.diag() / (conf.sum(0) + conf.sum(1) - conf.diag())).mean().item()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    train = DataLoader(Shapes(288, args.seed, True), batch_size=16, shuffle=True, drop_last=True)
    val = DataLoader(Shapes(100, 1000 + args.seed, False), batch_size=50)
    net, epochs = UNet(), 10
    opt = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.PolynomialLR(opt, total_iters=epochs * len(train), power=0.9)
    ce = nn.CrossEntropyLoss(weight=torch.tensor([0.5, 1.5, 1.5]), ignore_index=VOID)
    for epoch in range(epochs):
        net.train()
        total = 0.0
        for img, mask in train:
            logits = net(img)
            loss = ce(logits, mask) + dice_loss(logits, mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(train):.3f} miou {mean_iou(net, val):.3f}")
    print(f"metric: {mean_iou(net, val):.4f}")
