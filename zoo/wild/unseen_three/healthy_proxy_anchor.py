"""Metric learning with Proxy-Anchor: embeddings of digits, retrieval among held-out pictures.

expect: nothing
style: proxies are a parameter of the loss (in the optimizer with a rate a hundred times that of the net), no classifier at all at test time
"""
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
torch.manual_seed(seed)
np.random.seed(seed)


class ProxyAnchor(nn.Module):
    def __init__(self, n_classes, dim, margin=0.1, alpha=16):
        super().__init__()
        self.proxies = nn.Parameter(torch.empty(n_classes, dim))
        nn.init.kaiming_normal_(self.proxies, mode="fan_out")
        self.margin, self.alpha = margin, alpha

    def forward(self, emb, labels):
        cos = F.linear(F.normalize(emb), F.normalize(self.proxies))
        one_hot = F.one_hot(labels, len(self.proxies)).bool()
        pos = torch.exp(-self.alpha * (cos - self.margin)).masked_fill(~one_hot, 0).sum(0)
        neg = torch.exp(self.alpha * (cos + self.margin)).masked_fill(one_hot, 0).sum(0)
        present = one_hot.any(0)
        return torch.log1p(pos)[present].mean() + torch.log1p(neg).mean()


class Embedder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.embedding = nn.Linear(128, dim)

    def forward(self, x):
        return self.embedding(self.features(x).flatten(1))


digits = load_digits()
X = torch.tensor(digits.images[:, None] / 16.0, dtype=torch.float32)
X = (X - 0.305) / 0.376
y = torch.tensor(digits.target)
perm = torch.randperm(len(X))
X_train, y_train = X[perm[:1200]], y[perm[:1200]]
X_new, y_new = X[perm[1200:]], y[perm[1200:]]

model, criterion = Embedder(), ProxyAnchor(10, 16)
optimizer = torch.optim.AdamW([
    {"params": model.parameters(), "lr": 1e-3},
    {"params": criterion.parameters(), "lr": 1e-1},
], weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)


@torch.no_grad()
def recall_at_1(x, y):
    model.eval()
    e = F.normalize(model(x))
    sim = e @ e.T
    sim.fill_diagonal_(-1)
    return (y[sim.argmax(1)] == y).float().mean().item()


for epoch in range(9):
    model.train()
    losses = []
    for idx in torch.randperm(len(X_train)).split(64):
        loss = criterion(model(X_train[idx]), y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 10)
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    if epoch % 3 == 2:
        print("epoch %d loss %.3f R@1 of new pictures %.4f" % (epoch + 1, np.mean(losses), recall_at_1(X_new, y_new)))

print("metric: %.4f" % recall_at_1(X_new, y_new))
