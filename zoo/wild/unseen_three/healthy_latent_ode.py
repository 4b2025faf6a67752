"""A neural ODE, integrated with RK4, learns a damped pendulum from short pieces of one trajectory.

expect: nothing
style: flattened notebook after the classic demo: one true trajectory, batches are random windows of it, f has 50 tanh units
"""
import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser("ODE demo")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--data_size", type=int, default=400)
parser.add_argument("--batch_time", type=int, default=16)
parser.add_argument("--batch_size", type=int, default=32)
parser.add_argument("--niters", type=int, default=400)
parser.add_argument("--test_freq", type=int, default=100)
args = parser.parse_args()
torch.manual_seed(args.seed)

true_y0 = torch.tensor([[2.0, 0.0]])          # angle, angular velocity
t = torch.linspace(0.0, 10.0, args.data_size)


class Pendulum(nn.Module):
    def forward(self, t, y):
        return torch.stack([y[:, 1], -2.0 * torch.sin(y[:, 0]) - 0.2 * y[:, 1]], 1)


def odeint(func, y0, t):
    ys = [y0]
    for t0, t1 in zip(t[:-1], t[1:]):
        h, y = t1 - t0, ys[-1]
        k1 = func(t0, y)
        k2 = func(t0 + h / 2, y + h / 2 * k1)
        k3 = func(t0 + h / 2, y + h / 2 * k2)
        k4 = func(t1, y + h * k3)
        ys.append(y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return torch.stack(ys)


with torch.no_grad():
    true_y = odeint(Pendulum(), true_y0, t)


def get_batch():
    s = torch.randperm(args.data_size - args.batch_time)[:args.batch_size]
    batch_y0 = true_y[s, 0]
    batch_t = t[:args.batch_time]
    batch_y = torch.stack([true_y[s + i, 0] for i in range(args.batch_time)])
    return batch_y0, batch_t, batch_y


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 50), nn.Tanh(), nn.Linear(50, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y)


func = ODEFunc()
optimizer = torch.optim.Adam(func.parameters(), lr=2e-2)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.994)

for itr in range(1, args.niters + 1):
    optimizer.zero_grad()
    batch_y0, batch_t, batch_y = get_batch()
    pred_y = odeint(func, batch_y0, batch_t)
    loss = torch.mean(torch.abs(pred_y - batch_y))
    loss.backward()
    optimizer.step()
    scheduler.step()
    if itr % args.test_freq == 0:
        with torch.no_grad():
            pred_y = odeint(func, true_y0, t)
            total = torch.mean(torch.abs(pred_y - true_y))
            print("Iter {:04d} | Batch Loss {:.6f} | Whole trajectory {:.6f}".format(itr, loss.item(), total.item()))

print("metric: %.4f" % total.item())
