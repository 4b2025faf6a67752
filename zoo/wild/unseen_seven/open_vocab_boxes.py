"""A detector of one box per picture: generalised IoU takes corners and is given centres and sizes.

expect: box-format-mixed
or: loss-target-mismatch, output-misfits-loss
line: giou = generalized_box_iou(boxes, targets)
source: https://github.com/stevebottos/owl-vit-object-detection/issues/14
metric: mean IoU of test boxes, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def to_corners(b):
    cx, cy, w, h = b.unbind(-1)
    return torch.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], -1)


def area(b):
    return (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])


def iou_and_union(a, b):
    size = (torch.min(a[:, 2:], b[:, 2:]) - torch.max(a[:, :2], b[:, :2])).clamp(min=0)
    inter = size[:, 0] * size[:, 1]
    union = area(a) + area(b) - inter
    return inter / (union + 1e-7), union


def generalized_box_iou(a, b):
    """Both as (x0, y0, x1, y1)."""
    iou, union = iou_and_union(a, b)
    size = (torch.max(a[:, 2:], b[:, 2:]) - torch.min(a[:, :2], b[:, :2])).clamp(min=0)
    hull = size[:, 0] * size[:, 1]
    return iou - (hull - union) / (hull + 1e-7)


def scenes(n, side=24):
    """A bright rectangle on noise; its box as centre and size, in shares of the picture."""
    x = 0.3 * torch.randn(n, 1, side, side)
    size = torch.randint(4, 13, (n, 2))
    corner = (torch.rand(n, 2) * (side - size)).long()
    for i in range(n):
        (left, top), (w, h) = corner[i].tolist(), size[i].tolist()
        x[i, 0, top : top + h, left : left + w] += 1
    return x, torch.cat([corner + size / 2, size.float()], 1) / side


class BoxHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, 1, 1),
            nn.ReLU(),
        )
        self.box = nn.Sequential(nn.Flatten(), nn.Linear(32 * 36, 96), nn.GELU(), nn.Linear(96, 4))

    def forward(self, x):
        return self.box(self.backbone(x)).sigmoid()


class BoxCriterion(nn.Module):
    def __init__(self, l1=1.0, giou=4.0):
        super().__init__()
        self.l1, self.giou = l1, giou

    def forward(self, boxes, targets):
        loss_bbox = F.l1_loss(boxes, targets)
        giou = generalized_box_iou(boxes, targets)
        return self.l1 * loss_bbox + self.giou * (1 - giou).mean()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    (x, y), (x_test, y_test) = scenes(1600), scenes(300)
    model, criterion = BoxHead(), BoxCriterion()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        running = 0.0
        for idx in torch.randperm(len(x)).split(32):
            loss = criterion(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        with torch.no_grad():
            miou = iou_and_union(to_corners(model(x_test)), to_corners(y_test))[0].mean().item()
        print(f"[{epoch}] loss {running / 50:.3f} mIoU {miou:.3f}")
    print("metric:", miou)
