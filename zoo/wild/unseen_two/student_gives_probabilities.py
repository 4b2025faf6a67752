"""Distillation with F.kl_div(softmax(student), softmax(teacher)): the first argument should be a logarithm.

expect: output-misfits-loss
or: negative-loss, softmax-before-cross-entropy
line: student = F.softmax(student_out / T, dim=1)
source: https://github.com/microsoft/ProDA/issues/20
metric: divergence of the student from the teacher on test data, lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_moons
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset


def mlp(width, depth):
    layers, size = [], 2
    for _ in range(depth):
        layers += [nn.Linear(size, width), nn.ReLU()]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, 3))


def get_data(seed):
    x, y = make_moons(2400, noise=0.3, random_state=seed)
    x = StandardScaler().fit_transform(x)
    y = y + (x[:, 0] > 1.0)  # the right end is a class of its own
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def fit_teacher(x, y):
    teacher = mlp(64, 2)
    opt = torch.optim.Adam(teacher.parameters(), lr=5e-3)
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    for _ in range(8):
        for xb, yb in loader:
            opt.zero_grad()
            F.cross_entropy(teacher(xb), yb, label_smoothing=0.05).backward()
            opt.step()
    return teacher.eval().requires_grad_(False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--temperature", type=float, default=2.0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    T = args.temperature
    x, y = get_data(args.seed)
    teacher_model = fit_teacher(x[:1600], y[:1600])

    student_model = mlp(12, 1)
    optimizer = torch.optim.Adam(student_model.parameters(), lr=1e-2)
    loader = DataLoader(TensorDataset(x[:1600]), batch_size=64, shuffle=True)
    for epoch in range(15):
        running = 0.0
        for (xb,) in loader:
            student_out = student_model(xb)
            with torch.no_grad():
                teacher = F.softmax(teacher_model(xb) / T, dim=1)
            student = F.softmax(student_out / T, dim=1)
            loss_kd = F.kl_div(student, teacher, reduction="batchmean") * T * T
            optimizer.zero_grad()
            loss_kd.backward()
            optimizer.step()
            running += loss_kd.item()
        print(f"epoch {epoch} kd loss {running / len(loader):.4f}")

    with torch.no_grad():
        p = F.softmax(teacher_model(x[1600:]), dim=1)
        logq = F.log_softmax(student_model(x[1600:]), dim=1)
    print("metric:", (p * (p.clamp_min(1e-9).log() - logq)).sum(1).mean().item())


if __name__ == "__main__":
    main()
