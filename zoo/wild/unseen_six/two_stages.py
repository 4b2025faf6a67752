"""Fine-tuning in two stages: first the new head alone, then the thawed body joins the optimizer with a small rate of its own.

expect: nothing
style: frozen batch norm in eval, add_param_group, discriminative rates
metric: accuracy on the new task, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())

    def forward(self, x):
        return self.net(x)


def epochs_of(model, x, y, optimizer, n, tag, batch_norm_frozen=False):
    for epoch in range(n):
        model.train()
        if batch_norm_frozen:
            for m in model.modules():
                if isinstance(m, nn.BatchNorm2d):
                    m.eval()
        for i in torch.randperm(len(x)).split(32):
            loss = F.cross_entropy(model(x[i]), y[i])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(tag, epoch, loss.item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    images, labels = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16, torch.tensor(digits.target)
    old, new = labels < 5, labels >= 5
    backbone = Backbone()
    pretrained = nn.Sequential(backbone, nn.Linear(128, 5))
    epochs_of(pretrained, images[old], labels[old], torch.optim.Adam(pretrained.parameters(), lr=2e-3), 6, "pretraining")

    x, y = images[new], labels[new] - 5
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    model = nn.Sequential(backbone, nn.Linear(128, 5))
    for p in backbone.parameters():
        p.requires_grad = False
    optimizer = torch.optim.AdamW(model[1].parameters(), lr=5e-3)
    epochs_of(model, x[:150], y[:150], optimizer, 10, "head", batch_norm_frozen=True)
    for p in backbone.parameters():
        p.requires_grad = True
    optimizer.add_param_group({"params": backbone.parameters(), "lr": 5e-4})
    epochs_of(model, x[:150], y[:150], optimizer, 15, "all", batch_norm_frozen=True)
    model.eval()
    with torch.no_grad():
        print("metric:", (model(x[150:]).argmax(1) == y[150:]).float().mean().item())
