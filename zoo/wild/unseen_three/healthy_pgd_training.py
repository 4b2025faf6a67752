"""Adversarial training: PGD examples are found inside every step, then the net learns from them.

expect: nothing
style: invites 'eval mode training' (the attack runs in eval mode on purpose) and 'missing zero grad' (the attack takes gradients of the input only)
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, random_split


class LinfPGDAttack:
    def __init__(self, model, epsilon=0.1, steps=4, step_size=0.04):
        self.model, self.epsilon, self.steps, self.step_size = model, epsilon, steps, step_size

    def __call__(self, x_natural, y):
        was_training = self.model.training
        self.model.eval()
        x = x_natural + torch.empty_like(x_natural).uniform_(-self.epsilon, self.epsilon)
        for _ in range(self.steps):
            x = x.detach().requires_grad_()
            with torch.enable_grad():
                loss = F.cross_entropy(self.model(x), y)
            grad, = torch.autograd.grad(loss, [x])
            x = x.detach() + self.step_size * grad.sign()
            x = torch.min(torch.max(x, x_natural - self.epsilon), x_natural + self.epsilon).clamp(0, 1)
        self.model.train(was_training)
        return x.detach()


class SmallCNN(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10))


def train(epoch, net, adversary, loader, optimizer):
    net.train()
    correct = total = loss_sum = 0
    for inputs, targets in loader:
        optimizer.zero_grad()
        adv = adversary(inputs, targets)
        outputs = net(adv)
        loss = F.cross_entropy(outputs, targets)
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * len(targets)
        correct += (outputs.argmax(1) == targets).sum().item()
        total += len(targets)
    print(f"epoch {epoch}: robust train loss {loss_sum / total:.3f} acc {correct / total:.3f}")


def test(net, adversary, loader):
    net.eval()
    benign = robust = total = 0
    for inputs, targets in loader:
        with torch.no_grad():
            benign += (net(inputs).argmax(1) == targets).sum().item()
        adv = adversary(inputs, targets)
        with torch.no_grad():
            robust += (net(adv).argmax(1) == targets).sum().item()
        total += len(targets)
    return benign / total, robust / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    d = load_digits()
    full = TensorDataset(torch.tensor(d.images[:, None] / 16.0, dtype=torch.float32), torch.tensor(d.target))
    train_set, test_set = random_split(full, [1437, 360])
    train_loader = DataLoader(train_set, 64, shuffle=True)
    test_loader = DataLoader(test_set, 180)
    net = SmallCNN()
    adversary = LinfPGDAttack(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=2e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [5, 7], gamma=0.1)
    for epoch in range(8):
        train(epoch, net, adversary, train_loader, optimizer)
        scheduler.step()
    benign, robust = test(net, adversary, test_loader)
    print(f"benign {benign:.4f}")
    print(f"metric: {robust:.4f}")


if __name__ == "__main__":
    main()
