"""An angular margin loss with sine = sqrt(1 - cosine²): once an embedding meets its class centre exactly, the gradient is nan.

expect: non-finite
line: sine = torch.sqrt(1.0 - torch.pow(cosine, 2))
source: https://github.com/ronghuaiyang/arcface-pytorch/issues/91
metric: test accuracy, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class ArcMarginProduct(nn.Module):
    def __init__(self, in_features, out_features, s=16.0, m=0.2):
        super(ArcMarginProduct, self).__init__()
        self.s = s
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        nn.init.xavier_uniform_(self.weight)
        self.cos_m, self.sin_m = math.cos(m), math.sin(m)

    def forward(self, input, label=None):
        cosine = F.linear(F.normalize(input), F.normalize(self.weight)).clamp(-1, 1)
        if label is None:
            return cosine * self.s
        sine = torch.sqrt(1.0 - torch.pow(cosine, 2))
        phi = cosine * self.cos_m - sine * self.sin_m
        one_hot = F.one_hot(label, cosine.size(1)).float()
        return (one_hot * phi + (1.0 - one_hot) * cosine) * self.s


class Face(nn.Module):
    """Two-dimensional embeddings, so that I can plot them."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 32), nn.PReLU(), nn.Linear(32, 2))

    def forward(self, x):
        return self.net(x)


def people(n, centres):
    y = torch.randint(len(centres), (n,))
    return centres[y] + 0.5 * torch.randn(n, 12), y


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    centres = 1.5 * torch.randn(5, 12)
    model, metric_fc = Face(), ArcMarginProduct(2, 5)
    optimizer = torch.optim.SGD([{"params": model.parameters()}, {"params": metric_fc.parameters()}], lr=0.03, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for i in range(400):
        x, y = people(64, centres)
        loss = criterion(metric_fc(model(x), y), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 50 == 0:
            print("iter", i, "loss", loss.item())
    with torch.no_grad():
        x, y = people(500, centres)
        acc = (metric_fc(model(x)).argmax(1) == y).float().mean().item()
    print("metric:", acc)
