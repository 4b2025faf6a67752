"""Mean teacher: forty labels, many unlabelled points, a teacher that is an average of the student, buffers too.

expect: nothing
style: semi-supervised, EMA with buffers, consistency weight ramped up from zero
metric: test accuracy of the teacher, higher is better
"""

import argparse
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


def update_ema(student, teacher, decay):
    with torch.no_grad():
        for t, s in zip(teacher.parameters(), student.parameters()):
            t.mul_(decay).add_(s, alpha=1 - decay)
        for t, s in zip(teacher.buffers(), student.buffers()):
            t.copy_(s)


def noisy(x):
    return x + 0.15 * torch.randn_like(x)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
X, Y = load_digits(return_X_y=True)
p = torch.randperm(len(X))
X, Y = torch.tensor(X, dtype=torch.float32)[p] / 16, torch.tensor(Y)[p]
x_lab, y_lab, x_unl, x_test, y_test = X[:100], Y[:100], X[100:1400], X[1400:], Y[1400:]

student = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))
teacher = copy.deepcopy(student)
for q in teacher.parameters():
    q.requires_grad_(False)
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)

steps = 400
for step in range(steps):
    student.train(), teacher.train()
    i, j = torch.randint(0, 100, (32,)), torch.randint(0, len(x_unl), (96,))
    both = torch.cat([x_lab[i], x_unl[j]])
    out = student(noisy(both))
    with torch.no_grad():
        aim = teacher(noisy(both)).softmax(1)
    weight = 5.0 * math.exp(-5 * (1 - min(1, step / 150)) ** 2)
    loss = F.cross_entropy(out[:32], y_lab[i]) + weight * F.mse_loss(out.softmax(1), aim)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update_ema(student, teacher, min(1 - 1 / (step + 1), 0.98))
    if step % 50 == 0:
        print("step", step, "loss", round(loss.item(), 4), "consistency weight", round(weight, 3))

teacher.eval()
with torch.no_grad():
    print("metric:", (teacher(x_test).argmax(1) == y_test).float().mean().item())
