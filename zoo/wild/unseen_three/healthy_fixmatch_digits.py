"""FixMatch on digits: sixty labels, pseudo-labels of weakly augmented pictures teach strongly augmented ones, EMA for testing.

expect: nothing
style: semi-supervised; in the first steps nearly no pseudo-label passes the threshold, so that loss starts near zero and rises
"""
import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


def weak(x):
    dx, dy = torch.randint(-1, 2, (2,)).tolist()
    return torch.roll(x, (dx, dy), (2, 3)) + 0.05 * torch.randn_like(x)


def strong(x):
    x = weak(x) * (0.7 + 0.6 * torch.rand(len(x), 1, 1, 1)) + 0.25 * torch.randn_like(x)
    keep = torch.ones_like(x)
    for i in range(len(x)):                       # cutout
        r, c = torch.randint(0, 6, (2,)).tolist()
        keep[i, :, r:r + 3, c:c + 3] = 0
    return x * keep


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.LeakyReLU(0.1), nn.MaxPool2d(2),
            nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48), nn.LeakyReLU(0.1), nn.MaxPool2d(2))
        self.fc = nn.Linear(48 * 4, 10)

    def forward(self, x):
        return self.fc(self.body(x).flatten(1))


class ModelEMA:
    def __init__(self, model, decay):
        self.ema, self.decay = copy.deepcopy(model).eval(), decay
        self.ema.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for e, p in zip(self.ema.state_dict().values(), model.state_dict().values()):
            if e.dtype.is_floating_point:
                e.mul_(self.decay).add_(p, alpha=1 - self.decay)
            else:
                e.copy_(p)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--steps", type=int, default=400)
    ap.add_argument("--threshold", type=float, default=0.9)
    ap.add_argument("--lambda-u", type=float, default=1.0)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    d = load_digits()
    X = torch.tensor(d.images[:, None] / 8.0 - 1.0, dtype=torch.float32)
    y = torch.tensor(d.target)
    perm = torch.randperm(len(X))
    test, rest = perm[:400], perm[400:]
    labelled = torch.cat([rest[y[rest] == c][:6] for c in range(10)])

    model = Net()
    ema = ModelEMA(model, 0.98)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    model.train()
    for step in range(args.steps):
        i = labelled[torch.randint(len(labelled), (32,))]
        u = rest[torch.randint(len(rest), (96,))]
        logits = model(torch.cat([weak(X[i]), weak(X[u]), strong(X[u])]))
        logits_x, logits_w, logits_s = logits.split([32, 96, 96])
        loss_x = F.cross_entropy(logits_x, y[i])
        conf, pseudo = torch.softmax(logits_w.detach(), 1).max(1)
        mask = conf.ge(args.threshold).float()
        loss_u = (F.cross_entropy(logits_s, pseudo, reduction="none") * mask).mean()
        loss = loss_x + args.lambda_u * loss_u
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        ema.update(model)
        if step % 50 == 49:
            with torch.no_grad():
                acc = (ema.ema(X[test]).argmax(1) == y[test]).float().mean().item()
            print(f"step {step + 1} loss_x {loss_x.item():.3f} loss_u {loss_u.item():.3f} mask {mask.mean().item():.2f} ema acc {acc:.4f}")
    print(f"metric: {acc:.4f}")


if __name__ == "__main__":
    main()
