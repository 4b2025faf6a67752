"""Adversarial training: the input gets a gradient first, is moved along it, and the network then trains on the moved one.

expect: nothing
style: FGSM inside the loop, gradients of the parameters thrown away after the attack
metric: accuracy under attack, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epsilon", type=float, default=0.12)
args = parser.parse_args()
torch.manual_seed(args.seed)

d = load_digits()
order = torch.randperm(len(d.target))
images = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1)[order] / 16
labels = torch.tensor(d.target)[order]
model = nn.Sequential(nn.Conv2d(1, 20, 3, padding=1), nn.ReLU(), nn.Conv2d(20, 20, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(320, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def fgsm_attack(x, y, epsilon):
    x = x.clone().detach().requires_grad_(True)
    criterion(model(x), y).backward()
    return (x + epsilon * x.grad.sign()).clamp(0, 1).detach()


for epoch in range(8):
    for i in torch.randperm(1400).split(64):
        adversarial = fgsm_attack(images[i], labels[i], args.epsilon)
        optimizer.zero_grad()
        loss = 0.5 * criterion(model(images[i]), labels[i]) + 0.5 * criterion(model(adversarial), labels[i])
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", loss.item())

attacked = fgsm_attack(images[1400:], labels[1400:], args.epsilon)
with torch.no_grad():
    print("clean:", (model(images[1400:]).argmax(1) == labels[1400:]).float().mean().item())
    print("metric:", (model(attacked).argmax(1) == labels[1400:]).float().mean().item())
