"""Knowledge distillation: a wide teacher on few labels, a pocket student on the teacher's soft answers for many unlabelled points.

expect: nothing
style: temperature four and its square in the loss, teacher in eval mode under no_grad, log-probabilities against probabilities; the distillation loss has a floor above zero
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(width, depth, p=0.0):
    layers, d = [], 10
    for _ in range(depth):
        layers += [nn.Linear(d, width), nn.ReLU()] + ([nn.Dropout(p)] if p else [])
        d = width
    return nn.Sequential(*layers, nn.Linear(d, 6))


class Task:
    def __init__(self):
        self.centres = torch.randn(18, 10) * 1.1

    def draw(self, n):
        k = torch.randint(0, 18, (n,))
        return self.centres[k] + 0.7 * torch.randn(n, 10), k % 6


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def train_teacher(x, y):
    teacher = mlp(128, 2, p=0.2)
    opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
    for _ in range(10):
        teacher.train()
        for idx in torch.randperm(len(x)).split(64):
            opt.zero_grad()
            F.cross_entropy(teacher(x[idx]), y[idx]).backward()
            opt.step()
    return teacher.eval()


def distill(student, teacher, x, x_lab, y_lab, T=4.0, alpha=0.8):
    opt = torch.optim.Adam(student.parameters(), lr=5e-3)
    student.train()
    for epoch in range(8):
        for idx in torch.randperm(len(x)).split(128):
            with torch.no_grad():
                soft = F.softmax(teacher(x[idx]) / T, dim=1)
            kd = F.kl_div(F.log_softmax(student(x[idx]) / T, dim=1), soft, reduction="batchmean") * T * T
            pick = torch.randint(0, len(x_lab), (32,))
            ce = F.cross_entropy(student(x_lab[pick]), y_lab[pick])
            loss = alpha * kd + (1 - alpha) * ce
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 2:
            print(f"epoch {epoch + 1}: kd {kd.item():.3f} ce {ce.item():.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    task = Task()
    x_lab, y_lab = task.draw(1200)
    x_unl, _ = task.draw(4000)
    x_test, y_test = task.draw(1500)
    teacher = train_teacher(x_lab, y_lab)
    print(f"teacher {accuracy(teacher, x_test, y_test):.3f}")
    student = mlp(20, 1)
    distill(student, teacher, x_unl, x_lab, y_lab)
    print(f"metric: {accuracy(student, x_test, y_test):.4f}")


if __name__ == "__main__":
    main()
