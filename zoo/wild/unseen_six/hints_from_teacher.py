"""A narrow student learns from a wide teacher's soft answers and a hint in the middle; the teacher is frozen and in eval mode.

expect: nothing
style: distillation with temperature, regressor for hidden states, cross-entropy on few labels
metric: test accuracy of the student, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        h = self.body(x)
        return self.head(h), h


def fit_teacher(x, y):
    teacher = Net(200)
    opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
    for epoch in range(12):
        for i in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(teacher(x[i])[0], y[i])
            opt.zero_grad()
            loss.backward()
            opt.step()
    print("teacher loss", loss.item())
    return teacher.eval().requires_grad_(False)


def distill(teacher, x, y, labelled, T=3.0):
    student, regressor = Net(24), nn.Linear(24, 200)
    opt = torch.optim.Adam([*student.parameters(), *regressor.parameters()], lr=3e-3)
    for epoch in range(25):
        for i in torch.randperm(len(x)).split(64):
            with torch.no_grad():
                soft, hint = teacher(x[i])
            out, h = student(x[i])
            kd = F.kl_div(F.log_softmax(out / T, 1), F.softmax(soft / T, 1), reduction="batchmean") * T * T
            loss = kd + 0.1 * F.mse_loss(regressor(h), hint)
            known = i[i < labelled]
            if len(known):
                loss = loss + 0.1 * F.cross_entropy(student(x[known])[0], y[known])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 5 == 0:
            print("epoch", epoch, "loss", loss.item())
    return student.eval()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = load_digits(return_X_y=True)
    order = torch.randperm(len(x))
    x, y = torch.tensor(x, dtype=torch.float32)[order] / 16, torch.tensor(y)[order]
    student = distill(fit_teacher(x[:1300], y[:1300]), x[:1300], y[:1300], labelled=200)
    with torch.no_grad():
        print("metric:", (student(x[1300:])[0].argmax(1) == y[1300:]).float().mean().item())
