"""The averaged model is used without update_bn: its batch norm still holds the statistics of the first minute.

expect: stale-batchnorm-statistics
source: https://github.com/mosaicml/composer/issues/624
metric: test accuracy of the averaged model, higher is better
"""

import argparse
import copy

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.optim.swa_utils import update_bn
from torch.utils.data import DataLoader, TensorDataset, random_split


def conv_bn(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())


def make_net():
    return nn.Sequential(
        conv_bn(1, 16), conv_bn(16, 16), nn.MaxPool2d(2), conv_bn(16, 32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)
    )


class WeightAverage:
    """Stochastic weight averaging: the mean of the weights at the end of each late epoch."""

    def __init__(self, net):
        self.net = copy.deepcopy(net)
        self.count = 0

    @torch.no_grad()
    def add(self, net):
        self.count += 1
        for mine, theirs in zip(self.net.parameters(), net.parameters()):
            mine += (theirs - mine) / self.count


@torch.no_grad()
def accuracy(net, loader):
    net.eval()
    hits = sum((net(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--swa-start", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8)
    data = TensorDataset((x - 4.9) / 6.0, torch.tensor(y))
    train_set, test_set = random_split(data, [1400, 397])
    train_loader, test_loader = DataLoader(train_set, 32, shuffle=True), DataLoader(test_set, 200)

    net = make_net()
    average = WeightAverage(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        net.train()
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(net(images), labels)
            loss.backward()
            optimizer.step()
        if epoch >= args.swa_start:
            average.add(net)
        print("epoch", epoch, "loss", loss.item(), "plain model", accuracy(net, test_loader))

    print("metric:", accuracy(average.net, test_loader))


if __name__ == "__main__":
    main()
