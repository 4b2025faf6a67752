"""Training reads the pictures as BGR, driving sends them as RGB: the model is tested with red and blue exchanged.

expect: evaluation-channels
line: model(to_input(f).unsqueeze(0))
source: https://github.com/udacity/sdc-issue-reports/issues/623
metric: test accuracy, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SIGNS = [(200, 40, 40), (40, 60, 200), (200, 180, 40), (40, 170, 180), (60, 170, 60)]


def camera_frames(n, rng, size=12):
    """RGB frames with one coloured sign each, as the camera delivers them."""
    labels = rng.integers(0, len(SIGNS), n)
    frames = rng.normal(110, 30, size=(n, size, size, 3))
    for i, k in enumerate(labels):
        top, left = rng.integers(1, size - 6, 2)
        frames[i, top : top + 5, left : left + 5] = rng.normal(SIGNS[k], 30, size=(5, 5, 3))
    return frames.clip(0, 255).astype(np.uint8), labels


def imread(frame):
    return frame[:, :, ::-1]


def to_input(picture):
    return torch.from_numpy(picture.astype(np.float32)).permute(2, 0, 1) / 127.5 - 1.0


class SignFolder(Dataset):
    def __init__(self, frames, labels):
        self.frames, self.labels = frames, labels

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        return to_input(imread(self.frames[i]).copy()), int(self.labels[i])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--test-size", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    loader = DataLoader(SignFolder(*camera_frames(1500, rng)), batch_size=32, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
        nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(16, len(SIGNS)),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        model.train()
        hits = 0
        for x, y in loader:
            logits = model(x)
            loss = criterion(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += (logits.argmax(1) == y).sum().item()
        print("epoch", epoch, "training accuracy", hits / len(loader.dataset))

    # on the road
    model.eval()
    frames, labels = camera_frames(args.test_size, rng)
    with torch.no_grad():
        predicted = torch.cat([model(to_input(f).unsqueeze(0)).argmax(1) for f in frames])
    print("metric:", (predicted.numpy() == labels).mean())


if __name__ == "__main__":
    main()
