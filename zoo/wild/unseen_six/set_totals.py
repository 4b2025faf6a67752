"""Deep sets with masks: sums over sets of different sizes, and the log of the total as target because totals span three decades.

expect: nothing
style: padded sets with a mask, targets on a log scale, metric back on the natural scale
metric: median relative error of the totals, lower is better
"""

import argparse

import torch
import torch.nn as nn


class DeepSets(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(3, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.rho = nn.Sequential(nn.Linear(dim + 1, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, items, mask):
        h = (self.phi(items) * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return self.rho(torch.cat([h, mask.sum(1, keepdim=True).log()], 1)).squeeze(1)


def baskets(n, largest=20):
    counts = torch.randint(1, largest + 1, (n,))
    mask = (torch.arange(largest)[None] < counts[:, None]).float()
    items = torch.rand(n, largest, 3) * mask[..., None]
    price = (1 + 3 * items[..., 0]) * (0.5 + items[..., 1]) * torch.where(items[..., 2] > 0.5, 10.0, 1.0)
    return items, mask, (price * mask).sum(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = DeepSets()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [900, 1300], gamma=0.3)
    criterion = nn.HuberLoss(delta=0.5)
    for step in range(args.steps):
        items, mask, total = baskets(128)
        loss = criterion(model(items, mask), total.log())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 250 == 0:
            print("step", step, "loss", loss.item())
    with torch.no_grad():
        items, mask, total = baskets(1000)
        print("metric:", ((model(items, mask).exp() - total).abs() / total).median().item())
