"""FixMatch on digits: 60 labels, pseudo-labels above a threshold, weak and strong views, EMA model for testing.

expect: nothing
style: unsupervised term is zero at first on purpose, labelled batches repeat often, threshold mask, detached pseudo-labels
"""
import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="FixMatch")
parser.add_argument("--seed", default=0, type=int)
parser.add_argument("--steps", default=500, type=int)
parser.add_argument("--threshold", default=0.9, type=float)
parser.add_argument("--lambda-u", default=1.0, type=float)
parser.add_argument("--ema-decay", default=0.98, type=float)
args = parser.parse_args()
torch.manual_seed(args.seed)

X, Y = load_digits(return_X_y=True)
X, Y = torch.tensor(X, dtype=torch.float32).view(-1, 1, 8, 8) / 16.0, torch.tensor(Y)
perm = torch.randperm(len(X))
X, Y = X[perm], Y[perm]
test_x, test_y, pool_x, pool_y = X[:400], Y[:400], X[400:], Y[400:]
labelled = torch.cat([torch.nonzero(pool_y == c)[:6, 0] for c in range(10)])
mean, std = pool_x.mean(), pool_x.std()


def weak(x):
    shift = torch.randint(-1, 2, (1,)).item()
    return torch.roll(F.pad(x, (1, 1, 1, 1)), shift, dims=3)[:, :, 1:-1, 1:-1]


def strong(x):
    n = len(x)
    a = (torch.rand(n) - 0.5) * 0.7
    theta = torch.zeros(n, 2, 3)
    theta[:, 0, 0] = theta[:, 1, 1] = a.cos()
    theta[:, 0, 1], theta[:, 1, 0] = -a.sin(), a.sin()
    theta[:, :, 2] = (torch.rand(n, 2) - 0.5) * 0.3
    x = F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)
    for i, (r, c) in enumerate(torch.randint(0, 7, (n, 2)).tolist()):
        x[i, :, r : r + 2, c : c + 2] = mean  # cutout
    return x


def normalise(x):
    return (x - mean) / std


def forever(loader):
    while True:
        yield from loader


model = nn.Sequential(
    nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.LeakyReLU(0.1), nn.MaxPool2d(2),
    nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48), nn.LeakyReLU(0.1), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(192, 10))
ema_model = copy.deepcopy(model)
for p in ema_model.parameters():
    p.requires_grad_(False)

labelled_loader = forever(DataLoader(TensorDataset(pool_x[labelled], pool_y[labelled]), batch_size=20, shuffle=True))
unlabelled_loader = forever(DataLoader(TensorDataset(pool_x), batch_size=84, shuffle=True, drop_last=True))
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: torch.cos(torch.tensor(7 * 3.14159 * s / (16 * args.steps))).item())

for step in range(args.steps):
    model.train()
    x, y = next(labelled_loader)
    (u,) = next(unlabelled_loader)
    inputs = normalise(torch.cat([weak(x), weak(u), strong(u)]))
    logits = model(inputs)
    lx, lw, ls = logits.split([len(x), len(u), len(u)])
    loss_x = F.cross_entropy(lx, y)
    confidence, pseudo = lw.detach().softmax(1).max(1)
    mask = (confidence >= args.threshold).float()
    loss_u = (F.cross_entropy(ls, pseudo, reduction="none") * mask).mean()
    loss = loss_x + args.lambda_u * loss_u
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    with torch.no_grad():
        for e, m in zip(ema_model.state_dict().values(), model.state_dict().values()):
            if e.is_floating_point():
                e.mul_(args.ema_decay).add_(m, alpha=1 - args.ema_decay)
            else:
                e.copy_(m)
    if (step + 1) % 100 == 0:
        ema_model.eval()
        with torch.no_grad():
            acc = (ema_model(normalise(test_x)).argmax(1) == test_y).float().mean().item()
        print(f"{step + 1} loss_x {loss_x:.3f} loss_u {loss_u:.3f} mask {mask.mean():.2f} test {acc:.4f}")
print(f"metric: {acc:.4f}")
