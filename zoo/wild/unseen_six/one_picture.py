"""A network with batch norm is trained, saved and loaded, and then asked about one picture at a time without eval().

expect: train-mode-evaluation
line: net.load_state_dict(torch.load(path))
source: https://github.com/clcarwin/convert_torch_to_pytorch/issues/31
metric: accuracy on test pictures, higher is better
"""

import argparse
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


def build():
    return nn.Sequential(block(1, 12), block(12, 12), nn.MaxPool2d(2), block(12, 24), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10))


def fit(x, y, path, epochs=8):
    net = build()
    net.train()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(epochs):
        total = 0
        for idx in torch.randperm(len(x)).split(50):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("epoch", epoch, "loss", total / (len(x) / 50))
    torch.save(net.state_dict(), path)


def predict(net, picture):
    inp = np.expand_dims(np.expand_dims(picture, 0), 0).astype(np.float32) / 16
    out = torch.softmax(net(torch.from_numpy(inp)), 1)
    return int(np.argmax(out.detach().numpy()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(digits.target)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.pth")
        fit(x[:1400], y[:1400], path)
        net = build()
        net.load_state_dict(torch.load(path))
    answers = [predict(net, picture) for picture in digits.images[1400:]]
    print("metric:", float(np.mean(np.array(answers) == digits.target[1400:])))


if __name__ == "__main__":
    main()
