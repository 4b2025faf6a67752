"""SimCLR on digits: every sample is compared with all others of its batch, and a linear probe judges the features.

expect: nothing
style: NT-Xent over the whole batch, projection head that is thrown away, probe trained afterwards
metric: test accuracy of the probe, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


def augment(x):
    dy, dx = torch.randint(-1, 2, (2,)).tolist()
    x = torch.roll(x, (dy, dx), (2, 3))
    gain = 0.7 + 0.6 * torch.rand(len(x), 1, 1, 1)
    drop = (torch.rand_like(x) > 0.15).float()
    return x * gain * drop + 0.05 * torch.randn_like(x)


def nt_xent(a, b, temperature=0.3):
    z = F.normalize(torch.cat([a, b]), dim=1)
    sim = z @ z.T / temperature
    sim.fill_diagonal_(float("-inf"))
    n = len(a)
    return F.cross_entropy(sim, torch.cat([torch.arange(n) + n, torch.arange(n)]))


def main(seed):
    torch.manual_seed(seed)
    d = load_digits()
    p = torch.randperm(len(d.target))
    x, y = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1)[p] / 16, torch.tensor(d.target)[p]
    encoder = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 64))
    head = nn.Sequential(nn.ReLU(), nn.Linear(64, 32))
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=2e-3)
    for epoch in range(10):
        for i in torch.randperm(1400).split(100):
            loss = nt_xent(head(encoder(augment(x[i]))), head(encoder(augment(x[i]))))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "contrastive loss", loss.item())
    with torch.no_grad():
        features = encoder(x)
        features = (features - features.mean(0)) / features.std(0)
    probe = nn.Linear(64, 10)
    opt = torch.optim.Adam(probe.parameters(), lr=0.02)
    for _ in range(150):
        opt.zero_grad()
        F.cross_entropy(probe(features[:1400]), y[:1400]).backward()
        opt.step()
    print("metric:", (probe(features[1400:]).argmax(1) == y[1400:]).float().mean().item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args().seed)
