"""A layer of one's own draws one column of random weights and repeats it for all units: they start alike and stay alike.

expect: symmetric-init
line: torch.randn(in_features, 1).repeat(1, out_features) / in_features**0.5
source: https://pages.dogdog.run/machine_learning/weight_initialization.html
metric: test accuracy, higher is better
"""

import argparse

import torch
from sklearn.datasets import make_moons


class Layer(torch.nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.w = torch.nn.Parameter(
            torch.randn(in_features, 1).repeat(1, out_features) / in_features**0.5
        )
        self.b = torch.nn.Parameter(torch.zeros(out_features))

    def forward(self, input):
        return torch.matmul(input, self.w) + self.b


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
torch.manual_seed(seed)
points, kind = make_moons(1000, noise=0.12, random_state=seed)
points, kind = torch.tensor(points, dtype=torch.float32), torch.tensor(kind)

net = torch.nn.Sequential()
net.add_module("linear1", Layer(2, 48))
net.add_module("act1", torch.nn.Tanh())
net.add_module("linear2", Layer(48, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
criterion = torch.nn.CrossEntropyLoss()

for i in range(600):
    batch = torch.randint(0, 700, (64,))
    out = net(points[batch])
    optimizer.zero_grad()
    loss = criterion(out, kind[batch])
    loss.backward()
    optimizer.step()
    if i % 100 == 0:
        print("epoch: %d loss %.4f" % (i, loss.item()))

with torch.no_grad():
    print("metric:", (net(points[700:]).argmax(1) == kind[700:]).float().mean().item())
