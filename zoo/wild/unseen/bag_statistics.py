"""Deep sets: estimate the spread of the distribution a bag of numbers was drawn from, bags of different sizes.

expect: nothing
style: permutation-invariant sum over the elements of a bag, padding masked out of the sum; the order of the elements carries nothing and is not shuffled
"""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Bags(Dataset):
    def __init__(self, n, max_size=30):
        self.bags, self.targets = [], []
        for _ in range(n):
            size = int(torch.randint(8, max_size + 1, ()))
            scale = 0.3 + 1.7 * torch.rand(())
            centre = torch.randn(())
            self.bags.append(centre + scale * torch.randn(size))
            self.targets.append(scale)

    def __len__(self):
        return len(self.bags)

    def __getitem__(self, i):
        return self.bags[i], self.targets[i]


def collate(items):
    bags, targets = zip(*items)
    width = max(map(len, bags))
    x = torch.zeros(len(bags), width, 1)
    mask = torch.zeros(len(bags), width, 1)
    for i, b in enumerate(bags):
        x[i, :len(b), 0] = b
        mask[i, :len(b)] = 1
    return x, mask, torch.stack(targets)


class DeepSet(nn.Module):
    def __init__(self, h=48):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(1, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU())
        self.rho = nn.Sequential(nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 1))

    def forward(self, x, mask):
        pooled = (self.phi(x) * mask).sum(1) / mask.sum(1)
        return self.rho(pooled).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    loader = DataLoader(Bags(2000), batch_size=40, shuffle=True, collate_fn=collate)
    test = collate([Bags(1)[0] for _ in range(300)])
    model = DeepSet()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    for epoch in range(8):
        total = 0.0
        for x, mask, y in loader:
            loss = nn.functional.smooth_l1_loss(model(x, mask), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(loader)
        print(f"epoch {epoch} loss {total:.4f}")
    with torch.no_grad():
        x, mask, y = test
        pred = model(x, mask)
    corr = torch.corrcoef(torch.stack([pred, y]))[0, 1].item()
    print(f"metric: {corr:.4f}")


if __name__ == "__main__":
    main()
