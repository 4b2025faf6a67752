"""BYOL on digits: an online and a slow network, no negatives, a loss that goes towards minus one.

expect: nothing
style: stop-gradient, EMA target, cosine similarity with a minus sign, batch norm in the heads
metric: accuracy of nearest neighbours in the features, higher is better
"""

import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


def mlp(a, b, c):
    return nn.Sequential(nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU(), nn.Linear(b, c))


def view(x):
    x = torch.roll(x, tuple(torch.randint(-1, 2, (2,)).tolist()), (2, 3))
    return x * (torch.rand_like(x) > 0.2) * (0.7 + 0.6 * torch.rand(len(x), 1, 1, 1))


class BYOL(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = nn.Sequential(nn.Flatten(), mlp(64, 128, 64), nn.ReLU())
        self.projector, self.predictor = mlp(64, 64, 32), mlp(32, 64, 32)
        self.target = copy.deepcopy(nn.Sequential(self.online, self.projector))
        for p in self.target.parameters():
            p.requires_grad = False

    def loss(self, a, b):
        total = 0
        for u, v in ((a, b), (b, a)):
            p = self.predictor(self.projector(self.online(u)))
            with torch.no_grad():
                z = self.target(v)
            total = total - F.cosine_similarity(p, z, dim=1).mean() / 2
        return total

    @torch.no_grad()
    def update(self, tau=0.98):
        now = nn.Sequential(self.online, self.projector)
        for t, o in zip(self.target.parameters(), now.parameters()):
            t.mul_(tau).add_(o, alpha=1 - tau)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    d = load_digits()
    perm = torch.randperm(len(d.target))
    x, y = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1)[perm] / 16, torch.tensor(d.target)[perm]
    model = BYOL()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-3, weight_decay=1e-3)
    for epoch in range(12):
        model.train()
        for i in torch.randperm(1400).split(100):
            loss = model.loss(view(x[i]), view(x[i]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.update()
        if epoch % 3 == 0:
            print("epoch", epoch, "loss", loss.item())
    model.eval()
    with torch.no_grad():
        f = F.normalize(model.online(x), dim=1)
        nearest = (f[1400:] @ f[:1400].T).argmax(1)
    print("metric:", (y[:1400][nearest] == y[1400:]).float().mean().item())
