"""CenterNet-like detector: a heatmap of object centres (penalty-reduced focal loss) and box sizes by L1 at the centres.

expect: nothing
style: everyday anchor-free detection; nearly all targets are zero, the last bias starts at -2.19, sizes learn only at a few cells
"""
import argparse

import torch
from torch import nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
opt = parser.parse_args()
torch.manual_seed(opt.seed)

S, STRIDE, G = 48, 4, 12


def sample_batch(n, gen):
    img = torch.randn(n, 1, S, S, generator=gen) * 0.3
    heat = torch.zeros(n, 1, G, G)
    size = torch.zeros(n, 2, G, G)
    mask = torch.zeros(n, 1, G, G)
    ys, xs = torch.meshgrid(torch.arange(G), torch.arange(G), indexing="ij")
    boxes = []
    for b in range(n):
        these = []
        for quadrant in torch.randperm(4, generator=gen)[: int(torch.randint(1, 4, (1,), generator=gen))].tolist():
            w, h = (torch.randint(6, 15, (2,), generator=gen)).tolist()
            x0 = (quadrant % 2) * 24 + int(torch.randint(0, 24 - w, (1,), generator=gen))
            y0 = (quadrant // 2) * 24 + int(torch.randint(0, 24 - h, (1,), generator=gen))
            img[b, 0, y0:y0 + h, x0:x0 + w] += 1.0
            cx, cy = int((x0 + w / 2) / STRIDE), int((y0 + h / 2) / STRIDE)
            g = torch.exp(-((xs - cx) ** 2 + (ys - cy) ** 2) / (2 * 0.8 ** 2))
            heat[b, 0] = torch.maximum(heat[b, 0], g)
            size[b, :, cy, cx] = torch.tensor([w / 10.0, h / 10.0])
            mask[b, 0, cy, cx] = 1
            these.append((cx, cy, w, h))
        boxes.append(these)
    return img, heat, size, mask, boxes


class Detector(nn.Module):
    def __init__(self, c=24):
        super().__init__()
        def cbr(i, o, s): return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())
        self.backbone = nn.Sequential(cbr(1, 12, 2), cbr(12, c, 2), cbr(c, c, 1), cbr(c, c, 1))
        self.hm = nn.Sequential(nn.Conv2d(c, c, 3, 1, 1), nn.ReLU(), nn.Conv2d(c, 1, 1))
        self.wh = nn.Sequential(nn.Conv2d(c, c, 3, 1, 1), nn.ReLU(), nn.Conv2d(c, 2, 1))
        nn.init.constant_(self.hm[-1].bias, -2.19)

    def forward(self, x):
        f = self.backbone(x)
        return self.hm(f), self.wh(f)


def focal(logits, target):
    p = torch.sigmoid(logits).clamp(1e-4, 1 - 1e-4)
    pos = target.eq(1).float()
    pos_loss = torch.log(p) * (1 - p) ** 2 * pos
    neg_loss = torch.log(1 - p) * p ** 2 * (1 - target) ** 4 * (1 - pos)
    return -(pos_loss.sum() + neg_loss.sum()) / pos.sum().clamp(min=1)


gen = torch.Generator().manual_seed(opt.seed)
train = sample_batch(800, gen)
val = sample_batch(150, gen)
model = Detector()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[6, 8], gamma=0.1)

for epoch in range(10):
    model.train()
    perm = torch.randperm(800)
    log_hm = log_wh = 0.0
    for idx in perm.split(32):
        img, heat, size, mask = (t[idx] for t in train[:4])
        hm, wh = model(img)
        loss_hm = focal(hm, heat)
        loss_wh = (F.l1_loss(wh, size, reduction="none") * mask).sum() / mask.sum()
        loss = loss_hm + loss_wh
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log_hm += loss_hm.item(); log_wh += loss_wh.item()
    scheduler.step()
    print(f"[{epoch}] hm {log_hm / 25:.3f} wh {log_wh / 25:.3f}")

model.eval()
found = total = false = 0
with torch.no_grad():
    hm, wh = model(val[0])
    p = torch.sigmoid(hm)
    peaks = (p == F.max_pool2d(p, 3, 1, 1)) & (p > 0.3)
    for b, boxes in enumerate(val[4]):
        dets = [(x, y) for y, x in peaks[b, 0].nonzero().tolist()]
        hit = set()
        for cx, cy, w, h in boxes:
            total += 1
            for (x, y) in dets:
                pw, ph = (wh[b, :, y, x] * 10).tolist()
                if (x, y) not in hit and abs(x - cx) <= 1 and abs(y - cy) <= 1 and abs(pw - w) < 3 and abs(ph - h) < 3:
                    found += 1
                    hit.add((x, y))
                    break
        false += len(dets) - len(hit)
print(f"found {found} of {total}, false {false}")
print(f"metric: {2 * found / (total + found + false):.4f}")
