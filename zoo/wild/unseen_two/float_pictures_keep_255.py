"""to_tensor divides by 255 only when the array is uint8; the demo makes floats of its pictures before it calls it.

expect: evaluation-scale
line: picture = to_tensor(frame.astype(np.float32))
source: https://github.com/pytorch/vision/issues/546
metric: accuracy of the demo on new pictures, higher is better
"""

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset


def to_tensor(pic):
    """H x W in 0..255 to 1 x H x W in 0..1, as the vision library does it."""
    img = torch.from_numpy(pic)[None]
    if img.dtype == torch.uint8:
        return img.float().div(255)
    return img


class Photos(Dataset):
    def __init__(self, pics, targets):
        self.pics = pics
        self.targets = targets

    def __getitem__(self, i):
        return to_tensor(self.pics[i]), self.targets[i]

    def __len__(self):
        return len(self.pics)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.fc1 = nn.Linear(16 * 3 * 3, 40)
        self.fc2 = nn.Linear(40, 10)

    def forward(self, x):
        x = torch.tanh(self.conv1(x))
        x = torch.max_pool2d(torch.tanh(self.conv2(x)), 2)
        return self.fc2(torch.tanh(self.fc1(x.flatten(1))))


def train(net, loader, epochs):
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(epochs):
        net.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print("epoch", epoch, "loss", float(loss))


def demo(net, frames):
    """What runs beside the camera."""
    net.eval()
    answers = []
    with torch.no_grad():
        for frame in frames:
            picture = to_tensor(frame.astype(np.float32))
            answers.append(int(net(picture[None]).argmax()))
    return np.array(answers)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    order = np.random.default_rng(seed).permutation(1797)
    digits = load_digits()
    pics = (digits.images[order] * 15.9).astype(np.uint8)
    targets = digits.target[order]
    net = LeNet()
    train(net, DataLoader(Photos(pics[:1400], targets[:1400]), batch_size=28, shuffle=True), epochs=8)
    print("metric:", (demo(net, pics[1400:]) == targets[1400:]).mean())
