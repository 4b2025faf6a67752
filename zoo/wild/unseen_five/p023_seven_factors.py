"""A regression of seven factors goes through a first layer of one single unit: all predictions end at the mean.

expect: bottleneck-too-narrow
line: self.layer1 = block(7, 1)
source: https://blog.51cto.com/u_87851/7627358
metric: R squared on test data, higher is better
"""

import argparse

import torch
from torch import nn


def block(n_in, n_out, p=0.1):
    return nn.Sequential(nn.Linear(n_in, n_out), nn.BatchNorm1d(n_out), nn.ReLU(), nn.Dropout(p))


class BPNet(nn.Module):
    def __init__(self):
        super(BPNet, self).__init__()
        self.layer1 = block(7, 1)
        self.layer2 = block(1, 100)
        self.layer3 = block(100, 150)
        self.last_layer = nn.Linear(150, 1)

    def forward(self, x):
        return self.last_layer(self.layer3(self.layer2(self.layer1(x))))


def r_square(pred, y):
    return 1 - ((pred - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()


def main(seed):
    torch.manual_seed(seed)
    x = torch.randn(1200, 7)
    y = torch.sin(x[:, :1]) * x[:, 1:2] + x[:, 2:3].abs() - x[:, 3:4] * x[:, 4:5] + 0.1 * torch.randn(1200, 1)
    y = (y - y.mean()) / y.std()
    net = BPNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
    loss_func = nn.MSELoss()
    for epoch in range(40):
        net.train()
        perm = torch.randperm(1000)
        for i in range(0, 1000, 100):
            idx = perm[i : i + 100]
            loss = loss_func(net(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        if epoch % 8 == 0:
            with torch.no_grad():
                print(epoch, "train", r_square(net(x[:1000]), y[:1000]).item(), "test", r_square(net(x[1000:]), y[1000:]).item())
    with torch.no_grad():
        print("metric:", r_square(net(x[1000:]), y[1000:]).item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args().seed)
