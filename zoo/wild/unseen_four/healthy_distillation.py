"""Knowledge distillation: an ensemble of two wide teachers, a small student; part of the loss is a constant.

expect: nothing
style: teachers frozen and in eval, soft cross entropy minus the teacher's entropy (a constant, so that zero is perfect), T*T factor
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser(description="distil")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--T", type=float, default=4.0)
parser.add_argument("--alpha", type=float, default=0.8)
args = parser.parse_args()
torch.manual_seed(args.seed)

X, Y = load_digits(return_X_y=True)
X, Y = torch.tensor(X, dtype=torch.float32) / 16.0, torch.tensor(Y)
perm = torch.randperm(len(X))
X, Y = X[perm], Y[perm]
X = X - X[:1300].mean()
X_train, Y_train, X_test, Y_test = X[:1300], Y[:1300], X[1300:], Y[1300:]


def mlp(*sizes, dropout=0.0):
    layers = []
    for a, b in zip(sizes[:-2], sizes[1:-1]):
        layers += [nn.Linear(a, b), nn.ReLU()]
        if dropout:
            layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


def batches(size=50):
    for idx in torch.randperm(len(X_train)).split(size):
        yield X_train[idx] + 0.05 * torch.randn(len(idx), 64), Y_train[idx]


@torch.no_grad()
def accuracy(net):
    was_training = net.training
    net.eval()
    acc = (net(X_test).argmax(1) == Y_test).float().mean().item()
    net.train(was_training)
    return acc


class Ensemble(nn.Module):
    def __init__(self, members):
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x):
        return torch.stack([m(x) for m in self.members]).mean(0)


teachers = []
for k in range(2):
    teacher = mlp(64, 192, 192, 10, dropout=0.3)
    optimizer = torch.optim.Adam(teacher.parameters(), lr=1.5e-3)
    for epoch in range(10):
        for x, y in batches():
            optimizer.zero_grad()
            F.cross_entropy(teacher(x), y).backward()
            optimizer.step()
    print(f"teacher {k}: {accuracy(teacher):.4f}")
    teachers.append(teacher)

ensemble = Ensemble(teachers).eval().requires_grad_(False)
print(f"ensemble: {accuracy(ensemble):.4f}")

student = mlp(64, 24, 10)
optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[10, 13], gamma=0.3)
for epoch in range(15):
    student.train()
    log = torch.zeros(3)
    for x, y in batches():
        with torch.no_grad():
            soft = F.softmax(ensemble(x) / args.T, dim=1)
            entropy = -(soft * soft.log()).sum(1).mean()
        logits = student(x)
        soft_ce = -(soft * F.log_softmax(logits / args.T, dim=1)).sum(1).mean()
        hard_ce = F.cross_entropy(logits, y)
        loss = args.alpha * args.T**2 * (soft_ce - entropy) + (1 - args.alpha) * hard_ce
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log += torch.stack([loss.detach(), hard_ce.detach(), entropy])
    scheduler.step()
    log /= len(X_train) // 50
    print(f"epoch {epoch} loss {log[0]:.4f} hard {log[1]:.4f} teacher entropy {log[2]:.4f} test {accuracy(student):.4f}")
print(f"metric: {accuracy(student):.4f}")
