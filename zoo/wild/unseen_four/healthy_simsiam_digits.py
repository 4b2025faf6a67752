"""Self-supervised SimSiam on digits: minus cosine similarity, stop-gradient, then a linear probe.

expect: nothing
style: loss is a similarity with a minus sign, one encoder called twice, augmentation only in training, z detached on purpose
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

parser = argparse.ArgumentParser()
parser.add_argument("--seed", default=0, type=int)
parser.add_argument("--epochs", default=15, type=int)
args = parser.parse_args()
torch.manual_seed(args.seed)

images, labels = load_digits(return_X_y=True)
images = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 16.0
perm = torch.randperm(len(images))
images, labels = images[perm], labels[perm.numpy()]
train_x, test_x = images[:1400], images[1400:]
train_y, test_y = labels[:1400], labels[1400:]
mean, std = train_x.mean(), train_x.std()


def augment(x):
    n = len(x)
    theta = torch.zeros(n, 2, 3)
    angle = (torch.rand(n) - 0.5) * 0.6
    scale = 1 + (torch.rand(n) - 0.5) * 0.3
    theta[:, 0, 0] = theta[:, 1, 1] = angle.cos() * scale
    theta[:, 0, 1], theta[:, 1, 0] = -angle.sin() * scale, angle.sin() * scale
    theta[:, :, 2] = (torch.rand(n, 2) - 0.5) * 0.4
    x = F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)
    x = x * (0.7 + 0.6 * torch.rand(n, 1, 1, 1))
    return (x + 0.05 * torch.randn_like(x) - mean) / std


class SimSiam(nn.Module):
    def __init__(self, dim=128, pred_dim=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(24, 48, 3, padding=1, bias=False), nn.BatchNorm2d(48), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Flatten())
        self.projector = nn.Sequential(
            nn.Linear(192, dim, bias=False), nn.BatchNorm1d(dim), nn.ReLU(inplace=True),
            nn.Linear(dim, dim, bias=False), nn.BatchNorm1d(dim, affine=False))
        self.predictor = nn.Sequential(
            nn.Linear(dim, pred_dim, bias=False), nn.BatchNorm1d(pred_dim), nn.ReLU(inplace=True),
            nn.Linear(pred_dim, dim))

    def forward(self, x1, x2):
        z1, z2 = self.projector(self.encoder(x1)), self.projector(self.encoder(x2))
        p1, p2 = self.predictor(z1), self.predictor(z2)
        return p1, p2, z1.detach(), z2.detach()


model = SimSiam()
criterion = nn.CosineSimilarity(dim=1)
base_lr, batch_size = 0.06, 128
optimizer = torch.optim.SGD(model.parameters(), base_lr, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)

for epoch in range(args.epochs):
    model.train()
    total, n = 0.0, 0
    for idx in torch.randperm(len(train_x)).split(batch_size):
        if len(idx) < batch_size:
            continue
        batch = train_x[idx]
        p1, p2, z1, z2 = model(augment(batch), augment(batch))
        loss = -(criterion(p1, z2).mean() + criterion(p2, z1).mean()) * 0.5
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total, n = total + loss.item(), n + 1
    scheduler.step()
    spread = F.normalize(z1, dim=1).std(0).mean().item()  # 1/sqrt(128) = 0.088 if nothing has collapsed
    print(f"epoch {epoch} loss {total / n:.4f} spread {spread:.4f}")

model.eval()
with torch.no_grad():
    a = model.encoder((train_x - mean) / std).numpy()
    b = model.encoder((test_x - mean) / std).numpy()
probe = LogisticRegression(max_iter=2000).fit(a[:300], train_y[:300])
print(f"metric: {probe.score(b, test_y):.4f}")
