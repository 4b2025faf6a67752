"""A network for short clips is tried on one clip at a time, still in training mode: batch norm takes its statistics from that clip.

expect: train-mode-evaluation
line: for clip, label in zip(*test_set):
source: https://github.com/zhang-can/ECO-pytorch/issues/48
metric: accuracy on single clips, higher is better
"""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class ECOLite(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv3d(1, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU(), nn.MaxPool3d((1, 2, 2)),
            nn.Conv3d(8, 16, 3, padding=1), nn.BatchNorm3d(16), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(),
        )
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(16, classes)

    def forward(self, clip):
        return self.fc(self.drop(self.conv(clip)))


def clips(n, g):
    """Noise whose strength in space and time tells the class."""
    label = torch.randint(5, (n,), generator=g)
    level = torch.tensor([0.4, 0.7, 1.0, 1.5, 2.2])[label]
    x = torch.randn(n, 1, 4, 8, 8, generator=g) * level[:, None, None, None, None] * (0.9 + 0.2 * torch.rand(n, 1, 1, 1, 1, generator=g))
    return x, label


def train(args):
    g = torch.Generator().manual_seed(args.seed)
    torch.manual_seed(args.seed)
    model = ECOLite()
    loader = DataLoader(TensorDataset(*clips(800, g)), batch_size=32, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for epoch in range(args.epochs):
        right = 0
        for clip, label in loader:
            output = model(clip)
            loss = criterion(output, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (output.argmax(1) == label).sum().item()
        print("Epoch: [{}] Prec@1 {:.3f}".format(epoch, right / 800))
    return model, clips(200, g)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=6)
    model, test_set = train(parser.parse_args())
    hits = 0
    with torch.no_grad():
        for clip, label in zip(*test_set):
            hits += int(model(clip.unsqueeze(0)).argmax() == label)
    print("metric:", hits / 200)
