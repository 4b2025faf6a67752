"""Machine sounds cut into windows and classified with batch norm; testing went recording by recording without eval(), so batch norm normalized the windows of one recording with their own mean and took away what told the machines apart.

expect: train-mode-evaluation
or: samples-mixed
line: return model(torch.tensor(windows
source: https://github.com/wolny/pytorch-3dunet/issues/53
metric: share of right windows over all test recordings, higher is better
"""
import argparse

import numpy as np
import torch
import torch.nn as nn


def recording(machine, rng, windows=12):
    """Band energies of one recording: a machine profile and slow drift."""
    profile = profiles[machine] + rng.normal(0, 0.2, 16)
    return profile + rng.normal(0, 0.5, (windows, 16))


def build_model():
    return nn.Sequential(
        nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(),
        nn.Linear(32, 32), nn.BatchNorm1d(32), nn.ReLU(),
        nn.Linear(32, 5),
    )


def train(model, x, y, epochs=12):
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    model.train()
    for epoch in range(epochs):
        for idx in torch.randperm(len(x)).split(64):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            opt.step()
        print("epoch %d train loss %.3f" % (epoch, loss.item()))


@torch.no_grad()
def test_recording(model, windows):
    return model(torch.tensor(windows, dtype=torch.float32)).argmax(1).numpy()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    seed = p.parse_args().seed
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    profiles = rng.normal(0, 0.6, (5, 16))

    kinds = rng.integers(0, 5, 120)
    x = torch.tensor(np.concatenate([recording(k, rng) for k in kinds]), dtype=torch.float32)
    y = torch.tensor(np.repeat(kinds, 12))
    model = build_model()
    train(model, x, y)

    hits = total = 0
    for _ in range(60):
        kind = rng.integers(0, 5)
        guess = test_recording(model, recording(kind, rng))
        hits += (guess == kind).sum()
        total += len(guess)
    print("metric: %.4f" % (hits / total))
