"""Data and command-line options that the programs of the zoo share. No nethook in here."""

import argparse
import random

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

# What `--jitter` changes, and by how much: a factor between 1/x and x.
JITTERED = {"width": 1.4, "depth": 1.3, "lr": 1.5, "samples": 1.4, "steps": 1.2}


def arguments(**defaults):
    """Options with these defaults, `--seed` and `--jitter`; seeds everything.

    `--jitter K` (K > 0) varies width, depth, learning rate, data and steps a little, in the K-th
    way. What a fault needs to be a fault is not among these options.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jitter", type=int, default=0)
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    args = parser.parse_args()
    if args.jitter:
        chance = random.Random(args.jitter * 1000 + args.seed)
        for name, factor in JITTERED.items():
            if name in defaults:
                value = getattr(args, name) * factor ** chance.uniform(-1, 1)
                setattr(args, name, value if isinstance(defaults[name], float) else round(value))
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    return args


def digits(samples=1200, image=False, scale=True):
    """Handwritten digits, 8×8, of scikit-learn: training and test images and labels."""
    x, y = load_digits(return_X_y=True)
    order = np.random.permutation(len(x))[: samples + 300]
    x = torch.tensor(x[order], dtype=torch.float32)
    y = torch.tensor(y[order])
    if scale:
        x = (x - 4.9) / 6.0
    if image:
        x = x.view(-1, 1, 8, 8)
    return x[:-300], y[:-300], x[-300:], y[-300:]


def blobs(samples=1000, classes=4, features=10, spread=1.0):
    """Clouds of points around as many centres as there are classes."""
    centres = torch.randn(classes, features) * 1.5
    y = torch.randint(classes, (samples,))
    return centres[y] + spread * torch.randn(samples, features), y


def curve(samples=1000, features=6, noise=0.1):
    """A smooth function of some features, to be regressed: (N, features) and (N, 1)."""
    x = torch.randn(samples, features)
    w = torch.randn(features, 3)
    y = torch.sin(x @ w).sum(1, keepdim=True) + 0.5 * x[:, :1]
    return x, y + noise * torch.randn_like(y)


def waves(samples=600, length=20, classes=3):
    """Noisy sine waves; the class is their frequency: (N, length, 1) and (N,)."""
    y = torch.randint(classes, (samples,))
    t = torch.linspace(0, 6.28, length)
    phase = 6.28 * torch.rand(samples, 1)
    x = torch.sin(t[None] * (1 + y[:, None]) + phase) + 0.1 * torch.randn(samples, length)
    return x[..., None], y


def sentences(samples=800, length=12, vocabulary=20):
    """Sequences of tokens; the class is whether token 1 comes before token 2."""
    x = torch.randint(3, vocabulary, (samples, length))
    places = torch.rand(samples, length).argsort(1)[:, :2]
    x.scatter_(1, places, torch.tensor([[1, 2]]).expand(samples, 2))
    return x, (places[:, 0] < places[:, 1]).long()


def loader(*tensors, batch=32, shuffle=True, **options):
    """What everyone writes."""
    return DataLoader(TensorDataset(*tensors), batch_size=batch, shuffle=shuffle, **options)


def forever(batches):
    """Batches, epoch after epoch."""
    while True:
        yield from batches
