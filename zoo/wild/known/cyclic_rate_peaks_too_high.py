"""Fast adversarial training with a cyclic learning rate: it learns well until the rate nears its peak, then the loss explodes.

expect: diverged
or: learning-rate-too-high
line: parser.add_argument("--lr-max"
source: https://github.com/locuslab/fast_adversarial/issues/18
metric: test accuracy at the end, higher is better
"""

import argparse
import logging

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

logger = logging.getLogger(__name__)
logging.basicConfig(format="%(message)s", level=logging.INFO)


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", default=40, type=int)
    parser.add_argument("--epochs", default=10, type=int)
    parser.add_argument("--epsilon", default=0.05, type=float)
    parser.add_argument("--alpha", default=0.06, type=float)
    parser.add_argument("--lr-max", default=0.7, type=float)
    parser.add_argument("--seed", default=0, type=int)
    return parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, padding=1)
        self.fc1 = nn.Linear(256, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2).flatten(1)
        return self.fc2(F.relu(self.fc1(x)))


def main():
    args = get_args()
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    x, y = load_digits(return_X_y=True)
    order = np.random.permutation(len(x))
    x = torch.tensor(x[order] / 16.0, dtype=torch.float32).view(-1, 1, 8, 8)
    y = torch.tensor(y[order])
    x_train, y_train, x_test, y_test = x[:1200], y[:1200], x[1200:], y[1200:]

    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=args.lr_max, momentum=0.9, weight_decay=5e-4)
    steps = args.epochs * (len(x_train) // args.batch_size)
    lr_schedule = lambda t: np.interp([t], [0, args.epochs * 3 // 5, args.epochs], [0, args.lr_max, 0])[0]  # noqa: E731

    for epoch in range(args.epochs):
        train_loss, n = 0.0, 0
        for i, rows in enumerate(torch.randperm(len(x_train)).split(args.batch_size)):
            X, target = x_train[rows], y_train[rows]
            opt.param_groups[0].update(lr=lr_schedule(epoch + (i + 1) * args.epochs / steps))

            delta = torch.empty_like(X).uniform_(-args.epsilon, args.epsilon).requires_grad_()
            grad = torch.autograd.grad(F.cross_entropy(model(X + delta), target), delta)[0]
            delta = (delta + args.alpha * grad.sign()).clamp(-args.epsilon, args.epsilon).detach()

            loss = F.cross_entropy(model((X + delta).clamp(0, 1)), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            train_loss += loss.item() * len(X)
            n += len(X)
        logger.info("%d \t lr %.4f \t loss %.4f", epoch, opt.param_groups[0]["lr"], train_loss / n)

    model.eval()
    with torch.no_grad():
        print("metric: %.4f" % (model(x_test).argmax(1) == y_test).float().mean().item())


if __name__ == "__main__":
    main()
