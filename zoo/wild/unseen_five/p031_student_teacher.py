"""The outputs of a teacher are collected once, batch by batch, from a loader that shuffles; the student's batches come in another order.

expect: target-misaligned
line: teacher_outputs = fetch_teacher_outputs(teacher, train_dl)
source: https://github.com/haitongli/knowledge-distillation-pytorch/pull/16
metric: test accuracy of the student, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


def loss_fn_kd(outputs, labels, teacher_outputs, alpha=0.95, T=6):
    return nn.KLDivLoss(reduction="batchmean")(F.log_softmax(outputs / T, dim=1), F.softmax(teacher_outputs / T, dim=1)) * (
        alpha * T * T
    ) + F.cross_entropy(outputs, labels) * (1.0 - alpha)


def fetch_teacher_outputs(teacher_model, dataloader):
    teacher_model.eval()
    teacher_outputs = []
    for data_batch, _ in dataloader:
        with torch.no_grad():
            teacher_outputs.append(teacher_model(data_batch))
    return teacher_outputs


def train_teacher(x, y):
    teacher = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    opt = torch.optim.Adam(teacher.parameters(), lr=1e-3)
    for _ in range(8):
        for i in torch.randperm(len(x)).split(64):
            opt.zero_grad()
            F.cross_entropy(teacher(x[i]), y[i]).backward()
            opt.step()
    return teacher


def train_kd(model, teacher, optimizer, train_dl, epochs):
    teacher_outputs = fetch_teacher_outputs(teacher, train_dl)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for i, (train_batch, labels_batch) in enumerate(train_dl):
            output_batch = model(train_batch)
            loss = loss_fn_kd(output_batch, labels_batch, teacher_outputs[i])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("Epoch {}/{} loss={:05.3f}".format(epoch + 1, epochs, total / len(train_dl)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
    p = torch.randperm(len(x))
    x, y = x[p], y[p]
    teacher = train_teacher(x[:1200], y[:1200])
    student = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))
    train_dl = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=40, shuffle=True)
    train_kd(student, teacher, torch.optim.Adam(student.parameters(), lr=2e-3), train_dl, 12)
    student.eval()
    with torch.no_grad():
        print("metric: %.4f" % (student(x[1200:]).argmax(1) == y[1200:]).float().mean())
