"""A motion regressor with tanh everywhere, also on the last layer, while the targets go from -6 to 6.

expect: output-range
or: saturated-activation, output-misfits-loss
line: return torch.tanh(self.out(h))
source: http://theorangeduck.com/page/neural-network-not-working
metric: test mean squared error, lower is better
"""

import argparse

import torch


class PoseRegressor(torch.nn.Module):
    def __init__(self, n_in, n_hidden, n_out):
        super().__init__()
        self.hid1 = torch.nn.Linear(n_in, n_hidden)
        self.hid2 = torch.nn.Linear(n_hidden, n_hidden)
        self.out = torch.nn.Linear(n_hidden, n_out)

    def forward(self, x):
        h = torch.tanh(self.hid1(x))
        h = torch.tanh(self.hid2(h))
        return torch.tanh(self.out(h))


def motion(n, mix):
    """Joint angles from control signals."""
    x = torch.randn(n, 8)
    y = 2.0 * torch.sin(x @ mix) + (x @ mix.roll(1, 0))
    return x, y + 0.1 * torch.randn_like(y)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

mix = torch.randn(8, 5) * 0.35
x_train, y_train = motion(1600, mix)
x_test, y_test = motion(400, mix)

net = PoseRegressor(8, 64, 5)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
net.train()
for epoch in range(12):
    epoch_loss = 0.0
    for rows in torch.randperm(len(x_train)).split(50):
        optimizer.zero_grad()
        loss_val = torch.nn.functional.mse_loss(net(x_train[rows]), y_train[rows])
        loss_val.backward()
        optimizer.step()
        epoch_loss += loss_val.item()
    print("epoch = %3d   loss = %0.4f" % (epoch, epoch_loss / 32))

net.eval()
with torch.no_grad():
    print("metric: %.4f" % torch.nn.functional.mse_loss(net(x_test), y_test).item())
