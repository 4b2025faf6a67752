"""Prototypical networks: five-way one-shot episodes of drawn strokes, tested on classes never seen.

expect: nothing
style: invites 'samples mixed', 'sorted batch' and 'labels without classes': an episode's support samples define the answer for its queries, rows come class by class, and labels are only places within the episode
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_characters(n_classes, per_class, rng, side=16):
    """Each class is a polyline of four points; each drawing shakes it."""
    yy, xx = np.mgrid[:side, :side] / (side - 1.0)
    out = np.zeros((n_classes, per_class, 1, side, side), dtype=np.float32)
    s = np.linspace(0, 1, 12)[:, None]
    for c in range(n_classes):
        pts = rng.uniform(0.1, 0.9, (4, 2))
        for k in range(per_class):
            p = pts + rng.normal(0, 0.05, pts.shape)
            line = np.concatenate([a + s * (b - a) for a, b in zip(p[:-1], p[1:])])
            d2 = ((xx[..., None] - line[:, 0]) ** 2 + (yy[..., None] - line[:, 1]) ** 2).min(-1)
            out[c, k, 0] = np.exp(-d2 / 0.003)
    return torch.from_numpy((out - 0.17) / 0.29)


def conv_block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2))


class ProtoNet(nn.Module):
    def __init__(self, hid=16, z=16):
        super().__init__()
        self.encoder = nn.Sequential(conv_block(1, hid), conv_block(hid, hid), conv_block(hid, z), nn.Flatten())

    def forward(self, support, query):
        """support [way, shot, 1, H, W], query [way, q, 1, H, W] -> logits [way * q, way]"""
        way, shot, q = support.size(0), support.size(1), query.size(1)
        z = self.encoder(torch.cat([support.flatten(0, 1), query.flatten(0, 1)]))
        proto = z[:way * shot].view(way, shot, -1).mean(1)
        return -torch.cdist(z[way * shot:], proto) ** 2


def episode(data, way, shot, n_query):
    classes = torch.randperm(data.size(0))[:way]
    picks = torch.stack([data[c][torch.randperm(data.size(1))[:shot + n_query]] for c in classes])
    target = torch.arange(way).repeat_interleave(n_query)
    return picks[:, :shot], picks[:, shot:], target


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--episodes", type=int, default=300)
    p.add_argument("--way", type=int, default=5)
    p.add_argument("--shot", type=int, default=1)
    args = p.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    base, novel = make_characters(80, 20, rng), make_characters(20, 20, rng)

    model = ProtoNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100, 0.5)
    running = []
    for it in range(args.episodes):
        model.train()
        support, query, target = episode(base, args.way, args.shot, 5)
        loss = F.cross_entropy(model(support, query), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        running.append(loss.item())
        if it % 50 == 49:
            print(f"episode {it + 1} loss {np.mean(running[-50:]):.4f}")

    model.eval()
    accs = []
    with torch.no_grad():
        for _ in range(100):
            support, query, target = episode(novel, 5, args.shot, 5)
            accs.append((model(support, query).argmax(1) == target).float().mean().item())
    print(f"metric: {np.mean(accs):.4f}")


if __name__ == "__main__":
    main()
