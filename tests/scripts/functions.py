"""train(), test() and main(), as in the examples of PyTorch."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from utils import blobs, checksum


def build():
    return nn.Sequential(
        nn.Linear(8, 24), nn.ReLU(inplace=True), nn.Linear(24, 4), nn.LogSoftmax(dim=1)
    )


def train(args, model, data, optimizer, epoch):
    model.train()
    for number, (x, y) in enumerate(data):
        optimizer.zero_grad()
        loss = F.nll_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if number % args.log_interval == 0:
            print(f"Train Epoch: {epoch} [{number * len(x)}]\tLoss: {loss.item():.6f}")


@torch.no_grad()
def test(model, x, y):
    model.eval()
    output = model(x)
    loss = F.nll_loss(output, y, reduction="sum").item() / len(x)
    print(f"\nTest set: Average loss: {loss:.4f}, Accuracy: {(output.argmax(1) == y).sum()}\n")


def main():
    parser = argparse.ArgumentParser(description="PyTorch Example")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--log-interval", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(2)
    x, y = blobs()
    data = list(zip(x[:192].split(16), y[:192].split(16)))
    model = build()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        train(args, model, data, optimizer, epoch)
        test(model, x[192:], y[192:])
    print("weights", checksum(model))


if __name__ == "__main__":
    main()
