"""Pretrain a small CNN on five digits, then fine-tune a new head on the other five with a hundred pictures; a very short run.

expect: nothing
style: the backbone is frozen and kept in eval mode while the head trains, on purpose, so that a hundred pictures do not disturb its batch norm; thirty optimizer steps in the second phase
"""
import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits


def make_backbone():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
    )


class FineTuner(nn.Module):
    def __init__(self, backbone, n_classes):
        super().__init__()
        self.backbone = backbone
        for p in self.backbone.parameters():
            p.requires_grad = False
        self.head = nn.Linear(128, n_classes)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()  # keep the statistics of the pretraining
        return self

    def forward(self, x):
        with torch.no_grad():
            f = self.backbone(x)
        return self.head(f)


def fit(model, params, x, y, epochs, batch, lr):
    optimizer = torch.optim.Adam(params, lr=lr)
    model.train()
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(batch):
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    torch.manual_seed(ap.parse_args().seed)
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32)[:, None] / 8 - 1
    y = torch.tensor(d.target)
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    old, new = y < 5, y >= 5

    backbone = make_backbone()
    pretrain = nn.Sequential(backbone, nn.Linear(128, 5))
    loss = fit(pretrain, pretrain.parameters(), x[old], y[old], epochs=6, batch=50, lr=2e-3)
    print("pretraining loss %.4f" % loss)

    x_new, y_new = x[new], y[new] - 5
    tuner = FineTuner(backbone, 5)
    loss = fit(tuner, tuner.head.parameters(), x_new[:100], y_new[:100], epochs=6, batch=20, lr=1e-2)
    print("fine-tuning loss %.4f" % loss)
    tuner.eval()
    with torch.no_grad():
        acc = (tuner(x_new[100:]).argmax(1) == y_new[100:]).float().mean().item()
    print("metric: %.4f" % acc)
