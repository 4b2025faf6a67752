"""Training numbers the classes in the order of their folders, as strings; prediction takes the index for the name of the folder.

expect: labels-differ-in-evaluation
line: guess = int(scores.argmax())
source: https://github.com/pytorch/pytorch/issues/22566
metric: share of single predictions that are right, higher is better
"""

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class Folders(Dataset):
    """Pictures lie in folders; the folder of digit d in half h is named 2 * d + h."""

    def __init__(self, images, folders):
        self.images, self.folders = images, folders
        self.classes = sorted({str(f) for f in folders})
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return torch.tensor(self.images[i], dtype=torch.float32), self.class_to_idx[str(self.folders[i])]


def load(seed):
    digits = load_digits()
    dark = digits.images.mean((1, 2)) > np.median(digits.images.mean((1, 2)))
    folders = 2 * digits.target + dark
    images = digits.data / 8 - 1
    order = np.random.default_rng(seed).permutation(len(images))
    return images[order], folders[order]


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
images, folders = load(args.seed)
train = Folders(images[:1400], folders[:1400])
dataloaders = {"train": DataLoader(train, batch_size=40, shuffle=True)}
model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Dropout(0.2), nn.Linear(96, 20), nn.LogSoftmax(dim=1))
criterion, optimizer = nn.NLLLoss(), optim.Adam(model.parameters(), lr=0.002)

for epoch in range(15):
    running, right = 0.0, 0
    for inputs, labels in dataloaders["train"]:
        optimizer.zero_grad()
        out = model(inputs)
        loss = criterion(out, labels)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(labels)
        right += (out.argmax(1) == labels).sum().item()
    print(f"{epoch}: loss {running / len(train):.3f} acc {right / len(train):.3f}")

model.eval()
hits = 0
with torch.no_grad():
    for image, folder in zip(images[1400:], folders[1400:]):
        scores = model(torch.tensor(image, dtype=torch.float32).unsqueeze(0))[0]
        guess = int(scores.argmax())
        hits += guess == folder
print("metric:", hits / len(images[1400:]))
