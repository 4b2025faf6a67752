"""BYOL: the target network gets no gradient and follows the online one by a moving average, written by hand.

expect: nothing
metric: accuracy of a ridge probe on the online features, higher is better
"""

import argparse
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--tau", type=float, default=0.98)
args = parser.parse_args()
torch.manual_seed(args.seed)

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.BatchNorm1d(h), nn.ReLU(inplace=True), nn.Linear(h, o))


encoder = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten())
online = nn.Sequential(encoder, mlp(512, 128, 32))
predictor = mlp(32, 64, 32)
target = copy.deepcopy(online)
for param in target.parameters():
    param.requires_grad = False


def view(x):
    x = torch.roll(x, torch.randint(-1, 2, (2,)).tolist(), (2, 3))
    return (x + 0.15 * torch.randn_like(x)) * (1 + 0.2 * torch.randn(len(x), 1, 1, 1))


def loss_fn(p, z):
    return 2 - 2 * F.cosine_similarity(p, z.detach(), dim=-1).mean()


@torch.no_grad()
def update_moving_average():
    for new, old in zip(online.parameters(), target.parameters()):
        old.data = args.tau * old.data + (1 - args.tau) * new.data


opt = torch.optim.Adam([*online.parameters(), *predictor.parameters()], lr=1e-3)
for step in range(250):
    x = images[torch.randint(0, 1200, (64,))]
    a, b = view(x), view(x)
    with torch.no_grad():
        ta, tb = target(a), target(b)
    loss = loss_fn(predictor(online(a)), tb) + loss_fn(predictor(online(b)), ta)
    opt.zero_grad()
    loss.backward()
    opt.step()
    update_moving_average()
    if step % 25 == 0:
        print(step, loss.item())

with torch.no_grad():
    features = encoder.eval()(images).numpy()
probe = RidgeClassifier().fit(features[:1200], digits.target[:1200])
print("metric:", float(np.mean(probe.predict(features[1200:]) == digits.target[1200:])))
