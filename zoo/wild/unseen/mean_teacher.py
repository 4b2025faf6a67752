"""Mean teacher: sixty labelled and fifteen hundred unlabelled points, consistency with an averaged copy of the model.

expect: nothing
style: the teacher has no optimizer and no gradient and moves only by averaging; both stay in train mode for the noise; the consistency weight is ramped up from zero; the teacher is what is tested
"""
import argparse
import copy
import math

import torch
from sklearn.datasets import make_moons
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self, h=64):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(2, h), nn.Linear(h, h), nn.Linear(h, 2)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        if self.training:
            x = x + 0.1 * torch.randn_like(x)
        x = self.drop(torch.relu(self.fc1(x)))
        x = self.drop(torch.relu(self.fc2(x)))
        return self.fc3(x)


@torch.no_grad()
def update_ema(student, teacher, step, decay=0.98):
    d = min(1 - 1 / (step + 1), decay)
    for t, s in zip(teacher.parameters(), student.parameters()):
        t.mul_(d).add_(s, alpha=1 - d)


def ramp(step, length=200):
    return math.exp(-5 * (1 - min(step / length, 1)) ** 2)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    seed = ap.parse_args().seed
    torch.manual_seed(seed)
    points, labels = make_moons(2600, noise=0.12, random_state=seed)
    x = torch.tensor(points, dtype=torch.float32) - torch.tensor([0.5, 0.25])
    y = torch.tensor(labels)
    x_lab, y_lab, x_unl, x_test, y_test = x[:60], y[:60], x[60:1600], x[1600:], y[1600:]

    student = Net()
    teacher = copy.deepcopy(student)
    for p in teacher.parameters():
        p.requires_grad_(False)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    for step in range(1, 481):
        u = x_unl[torch.randint(0, len(x_unl), (64,))]
        k = torch.randint(0, 60, (20,))
        supervised = F.cross_entropy(student(x_lab[k]), y_lab[k])
        with torch.no_grad():
            target = teacher(u).softmax(1)
        consistency = F.mse_loss(student(u).softmax(1), target)
        loss = supervised + 5 * ramp(step) * consistency
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update_ema(student, teacher, step)
        if step % 120 == 0:
            print(f"step {step} supervised {supervised.item():.3f} consistency {consistency.item():.4f}")
    teacher.eval()
    with torch.no_grad():
        acc = (teacher(x_test).argmax(1) == y_test).float().mean().item()
    print(f"metric: {acc:.4f}")


if __name__ == "__main__":
    main()
