"""Detection without anchors: per-cell scores with a focal loss, distances to four sides where a thing is, centre weighting.

expect: nothing
style: most cells are background, the box loss is normalised by positives, a prior in the bias of the scores
metric: share of things found with IoU above one half, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SIDE, CELL, N = 32, 4, 8
MID = (
    torch.stack(torch.meshgrid(torch.arange(N), torch.arange(N), indexing="xy"), -1).float() * CELL
    + CELL / 2
)  # [N, N, (x, y)]


def scenes(n):
    x, boxes = 0.25 * torch.randn(n, 1, SIDE, SIDE), torch.zeros(n, 2, 4)
    for i in range(n):
        for k in range(2):
            w, h = torch.randint(7, 14, (2,)).tolist()
            left = (
                int(torch.randint(0, SIDE // 2 - w + 1 if w < SIDE // 2 else 1, ())) + k * SIDE // 2
            )
            top = int(torch.randint(0, SIDE - h, ()))
            x[i, 0, top : top + h, left : left + w] += 1
            boxes[i, k] = torch.tensor([left, top, left + w, top + h])
    return x, boxes


def targets(boxes):
    """For every cell: whether it lies in the middle of a thing, and its distances to the sides."""
    sides = torch.cat(
        [
            MID[None, None] - boxes[:, :, None, None, :2],
            boxes[:, :, None, None, 2:] - MID[None, None],
        ],
        -1,
    )
    inside = sides.amin(-1) > 1.5
    return inside.any(1).float(), torch.where(inside[:, 0, ..., None], sides[:, 0], sides[:, 1])


class FCOS(nn.Module):
    def __init__(self, c=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, c, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(c, c, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(c, c, 3, 1, 1),
            nn.ReLU(),
            nn.Conv2d(c, c, 3, 1, 1),
            nn.ReLU(),
        )
        self.score, self.box = nn.Conv2d(c, 1, 3, padding=1), nn.Conv2d(c, 4, 3, padding=1)
        nn.init.constant_(self.score.bias, -math.log(9))
        nn.init.constant_(self.box.bias, math.log(4))

    def forward(self, x):
        h = self.body(x)
        return self.score(h).squeeze(1), self.box(h).permute(0, 2, 3, 1).exp()


def iou_sides(a, b):
    inter = (torch.min(a[..., 0], b[..., 0]) + torch.min(a[..., 2], b[..., 2])) * (
        torch.min(a[..., 1], b[..., 1]) + torch.min(a[..., 3], b[..., 3])
    )
    area = lambda s: (s[..., 0] + s[..., 2]) * (s[..., 1] + s[..., 3])
    return inter / (area(a) + area(b) - inter)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    (x, boxes), (xt, boxes_t) = scenes(500), scenes(150)
    pos, sides = targets(boxes)
    model = FCOS()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        for idx in torch.randperm(len(x)).split(20):
            score, box = model(x[idx])
            y = pos[idx]
            ce = F.binary_cross_entropy_with_logits(score, y, reduction="none")
            p = torch.sigmoid(score)
            n = y.sum().clamp(min=1)
            loss_cls = (ce * torch.where(y > 0, 0.25 * (1 - p) ** 2, 0.75 * p**2)).sum() / n
            loss_box = -(iou_sides(box, sides[idx]).clamp(min=1e-6).log() * y).sum() / n
            optimizer.zero_grad()
            (loss_cls + loss_box).backward()
            optimizer.step()
        if epoch % 3 == 2:
            print(
                f"epoch {epoch + 1} loss_cls {loss_cls.item():.3f} loss_box {loss_box.item():.3f}"
            )
    found = 0
    with torch.no_grad():
        score, box = model(xt)
    for i in range(len(xt)):
        for k in range(2):  # one thing in each half of the picture
            part = score[i][:, 4 * k : 4 * k + 4]
            at = int(part.argmax())
            r, c = at // 4, at % 4 + 4 * k
            mx, my = MID[r, c].tolist()
            truth = boxes_t[i, k]
            as_sides = torch.stack([mx - truth[0], my - truth[1], truth[2] - mx, truth[3] - my])
            found += as_sides.min() > 0 and iou_sides(box[i, r, c], as_sides) > 0.5
    print("metric:", float(found) / (2 * len(xt)))


if __name__ == "__main__":
    main()
