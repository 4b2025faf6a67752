"""A sigmoid network for an equality gate starts with uniform positive weights and learns at 0.01 with SGD: it stays at one half.

expect: learning-rate-too-low
line: optimizer = torch.optim.SGD(self.parameters(), lr=0.01)
source: https://discuss.pytorch.org/t/simple-linear-sigmoid-network-not-learning/98714
metric: mean absolute error over the four cases, lower is better
"""

import argparse

import torch as torch
import torch.nn as nn


class Network(nn.Module):

    def __init__(self):
        super(Network, self).__init__()
        self.x1 = nn.Linear(2, 8)
        self.s1 = nn.Sigmoid()
        self.x2 = nn.Linear(8, 1)
        self.s2 = nn.Sigmoid()

    def init(self):
        nn.init.uniform_(self.x1.weight, -1, 1)
        nn.init.uniform_(self.x2.weight, -1, 1)

    def forward(self, feats):
        xs1 = self.s1(self.x1(feats))
        return self.s2(self.x2(xs1))

    def fit(self, val_expected, feats_next, rounds):
        criterion = nn.MSELoss()
        optimizer = torch.optim.SGD(self.parameters(), lr=0.01)
        for i in range(rounds):
            def closure():
                optimizer.zero_grad()
                resp = self.forward(feats_next)
                error = criterion(resp, val_expected)
                error.backward()
                return error
            error = optimizer.step(closure)
            if i % 500 == 0:
                print(i, error.item())


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
cases = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
wanted = torch.tensor([[1.0], [0.0], [0.0], [1.0]])
net = Network()
net.init()
print("--TRAIN START-")
net.fit(wanted, cases, 4000)
print("--TRAIN END-")
with torch.no_grad():
    print(net(cases))
    print("metric:", (net(cases) - wanted).abs().mean().item())
