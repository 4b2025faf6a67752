"""Training is stopped after three epochs, saved, and resumed in a new model with a new optimizer from the checkpoint.

expect: nothing
style: checkpoint with model, optimizer and scheduler; the first model and optimizer are left behind (looks like a stale optimizer)
"""

import argparse
import os
import tempfile

import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(13, 32)
        self.bn1 = nn.BatchNorm1d(32)
        self.fc2 = nn.Linear(32, 3)

    def forward(self, x):
        return self.fc2(torch.relu(self.bn1(self.fc1(x))))


def build(lr):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=24, power=1.0)
    return model, optimizer, scheduler


def run(model, optimizer, scheduler, loader, start_epoch, end_epoch):
    for epoch in range(start_epoch, end_epoch):
        model.train()
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        if epoch % 4 == 0:
            print(f"epoch {epoch} lr {scheduler.get_last_lr()[0]:.5f} loss {total / len(loader):.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    x, y = load_wine(return_X_y=True)
    order = torch.randperm(len(x))
    x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)[order]
    y = torch.tensor(y)[order]
    loader = DataLoader(TensorDataset(x[:120], y[:120]), batch_size=12, shuffle=True)

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        model, optimizer, scheduler = build(3e-3)
        run(model, optimizer, scheduler, loader, 0, 8)
        torch.save(
            {"epoch": 8, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}, path
        )
        print("=> interrupted")

        model, optimizer, scheduler = build(3e-3)
        checkpoint = torch.load(path, weights_only=True)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        print("=> loaded checkpoint (epoch {})".format(checkpoint["epoch"]))
        run(model, optimizer, scheduler, loader, checkpoint["epoch"], 24)

    model.eval()
    with torch.no_grad():
        print("metric: %.4f" % (model(x[120:]).argmax(1) == y[120:]).float().mean().item())


if __name__ == "__main__":
    main()
