"""net.train() stands before the epochs; the validation inside calls net.eval() and nobody takes it back.

expect: eval-mode-training
line: net.train()
source: https://github.com/wkentaro/pytorch-fcn/pull/56
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--valid_every", type=int, default=5)
args = parser.parse_args()
torch.manual_seed(args.seed)

digits = load_digits()
x = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
x, y = x[order], y[order]
train_x, train_y, valid_x, valid_y = x[:1300], y[:1300], x[1300:], y[1300:]


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(conv(1, 16), conv(16, 16), nn.MaxPool2d(2), conv(16, 32), conv(32, 32), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


class Trainer:
    def __init__(self, net):
        self.net = net
        self.optim = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
        self.iteration = 0

    def validate(self):
        self.net.eval()
        with torch.no_grad():
            out = self.net(valid_x)
            print(self.iteration, "valid loss", nn.functional.cross_entropy(out, valid_y).item())
        return (out.argmax(1) == valid_y).float().mean().item()

    def train_epoch(self):
        for rows in torch.randperm(len(train_x)).split(40):
            if self.iteration % args.valid_every == args.valid_every - 1:
                self.validate()
            loss = nn.functional.cross_entropy(self.net(train_x[rows]), train_y[rows])
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
            self.iteration += 1


net = Net()
trainer = Trainer(net)
net.train()
for epoch in range(5):
    trainer.train_epoch()
print("metric:", trainer.validate())
