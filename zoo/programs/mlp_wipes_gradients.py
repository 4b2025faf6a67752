"""A perceptron on clouds of points; gradients are cleared between backward and step.

expect: gradient-wiped
half: second
"""

import torch
from common import arguments, blobs, forever, loader
from torch import nn

args = arguments(width=48, lr=0.05, steps=150, samples=900)


def main():
    model = nn.Sequential(nn.Linear(10, args.width), nn.ReLU(), nn.Linear(args.width, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    loss_fn = nn.CrossEntropyLoss()
    batches = forever(loader(*blobs(args.samples)))
    for i in range(args.steps):
        x, y = next(batches)
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        if i % 25 == 0:
            print(f"{i}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
