"""AdaCos / ArcFace: the class centres live in metric_fc, and the optimizer has the parameters of the backbone alone.

expect: optimizer-misses-parameters
line: optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
source: https://github.com/4uiiurz1/pytorch-adacos/issues/10
metric: share of unseen people whose nearest neighbour is the same person, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

N_PEOPLE, DIM = 60, 8


class ArcFace(nn.Module):
    def __init__(self, num_features, num_classes, s=12.0, m=0.2):
        super().__init__()
        self.W = nn.Parameter(torch.empty(num_classes, num_features))
        nn.init.xavier_uniform_(self.W)
        self.s, self.m = s, m

    def forward(self, x, label):
        logits = F.linear(F.normalize(x), F.normalize(self.W))
        theta = torch.acos(logits.clamp(-1 + 1e-7, 1 - 1e-7))
        target = torch.cos((theta + self.m).clamp(max=math.pi))
        one_hot = F.one_hot(label, logits.size(1))
        return self.s * torch.where(one_hot == 1, target, logits)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(40, 64), nn.BatchNorm1d(64), nn.PReLU(), nn.Linear(64, 64), nn.BatchNorm1d(64), nn.PReLU())
        self.fc = nn.Linear(64, DIM)

    def forward(self, x):
        return self.fc(self.features(x))


def people(n, generator_world):
    """A face has an identity of 5 numbers and 8 nuisances (light, pose) that are much larger."""
    mix_id, mix_pose = generator_world
    identity = torch.randn(n, 5)

    def photos(who):
        pose = 2.0 * torch.randn(len(who), 8)
        return torch.tanh((identity[who] @ mix_id + pose @ mix_pose) / 2) + 0.05 * torch.randn(len(who), 40)

    return photos


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    world = (torch.randn(5, 40), torch.randn(8, 40))
    photos, strangers = people(N_PEOPLE, world), people(80, world)

    model = Backbone()
    metric_fc = ArcFace(DIM, N_PEOPLE)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    for it in range(800):
        model.train()
        label = torch.randint(0, N_PEOPLE, (64,))
        loss = criterion(metric_fc(model(photos(label)), label), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 100 == 0:
            print(f"iter {it} loss {loss.item():.4f}")

    model.eval()
    with torch.no_grad():
        who = torch.arange(80).repeat(4)
        z = F.normalize(model(strangers(who)))
        similar = z @ z.T - 2 * torch.eye(len(z))
    print("metric:", (who[similar.argmax(1)] == who).float().mean().item())
