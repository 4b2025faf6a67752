"""SGD with warm restarts on the digits, one snapshot at the end of every cycle, the snapshots vote.

expect: nothing
style: the rate jumps back up twice and the loss with it; the network gets worse in the middle of a cycle on purpose; snapshots are deep copies
"""
import argparse
import copy

import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 4, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--cycles", type=int, default=3)
    a = p.parse_args()
    torch.manual_seed(a.seed)
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32)[:, None] / 8 - 1
    y = torch.tensor(d.target)
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    x_tr, y_tr, x_te, y_te = x[:1300], y[:1300], x[1300:], y[1300:]

    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.15, momentum=0.9, weight_decay=1e-4)
    steps = 63  # three epochs of 21 batches per cycle
    scheduler = CosineAnnealingWarmRestarts(optimizer, T_0=steps, eta_min=1e-4)
    snapshots, step = [], 0
    while len(snapshots) < a.cycles:
        for idx in torch.randperm(len(x_tr)).split(64):
            loss = nn.functional.cross_entropy(model(x_tr[idx]), y_tr[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            step += 1
            if step % 21 == 0:
                print(f"step {step} loss {loss.item():.4f} rate {scheduler.get_last_lr()[0]:.4f}")
            if step % steps == 0:
                snapshots.append(copy.deepcopy(model).eval())
    with torch.no_grad():
        vote = sum(m(x_te).softmax(1) for m in snapshots)
    print(f"metric: {(vote.argmax(1) == y_te).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
