"""Distillation as it should be: a teacher in eval mode gives soft labels for the very batch that the student sees.

expect: nothing
style: temperature, two loss terms with weights, teacher's outputs under no_grad
metric: test accuracy of the student, higher is better
"""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import make_classification
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--temperature", type=float, default=3.0)
parser.add_argument("--alpha", type=float, default=0.7)
opt = parser.parse_args()
torch.manual_seed(opt.seed)

X, Y = make_classification(3000, 20, n_informative=12, n_redundant=2, n_classes=5, class_sep=1.6, random_state=opt.seed)
X, Y = torch.tensor(X, dtype=torch.float32), torch.tensor(Y)
X = (X - X.mean(0)) / X.std(0)
train, test = slice(0, 2200), slice(2200, None)

teacher = nn.Sequential(nn.Linear(20, 160), nn.ReLU(), nn.Dropout(0.3), nn.Linear(160, 160), nn.ReLU(), nn.Dropout(0.3), nn.Linear(160, 5))
student = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 5))


def epochs(n, size):
    for e in range(n):
        for idx in torch.randperm(2200).split(size):
            yield e, X[train][idx], Y[train][idx]


def accuracy(net):
    net.eval()
    with torch.no_grad():
        return (net(X[test]).argmax(1) == Y[test]).float().mean().item()


teacher.train()
optimizer = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for e, x, y in epochs(12, 64):
    optimizer.zero_grad()
    F.cross_entropy(teacher(x), y).backward()
    optimizer.step()
print("teacher:", accuracy(teacher))

teacher.eval()
student.train()
optimizer = torch.optim.Adam(student.parameters(), lr=4e-3)
T = opt.temperature
for e, x, y in epochs(15, 64):
    with torch.no_grad():
        soft = F.softmax(teacher(x) / T, dim=1)
    out = student(x)
    kd = F.kl_div(F.log_softmax(out / T, dim=1), soft, reduction="batchmean") * T * T
    loss = opt.alpha * kd + (1 - opt.alpha) * F.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("last loss", loss.item())
print("metric:", accuracy(student))
