"""Descriptors learnt from two collections at once: brackets in the wrong place shift all labels alike, and different things share a label.

expect: classes-merged
or: target-misaligned, loss-target-mismatch
line: labels = torch.cat([labels, datasets[i][1]]) + torch.max(labels) + 1
source: https://github.com/DagnyT/hardnet/issues/25
metric: share of test patches whose nearest neighbour shows the same thing, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class TotalDatasetsLoader(torch.utils.data.Dataset):
    """Draws anchor, positive and negative from several collections of (patches, labels)."""

    def __init__(self, datasets, n_triplets):
        data, labels = datasets[0][0], datasets[0][1]
        for i in range(1, len(datasets)):
            data = torch.cat([data, datasets[i][0]])
            labels = torch.cat([labels, datasets[i][1]]) + torch.max(labels) + 1
        self.data, self.labels = data, labels
        self.n_triplets = n_triplets
        self.of_label = {int(c): (labels == c).nonzero().squeeze(1) for c in labels.unique()}

    def __len__(self):
        return self.n_triplets

    def __getitem__(self, index):
        classes = list(self.of_label)
        c1, c2 = (classes[i] for i in torch.randperm(len(classes))[:2])
        pick = lambda c: self.data[
            self.of_label[c][torch.randint(len(self.of_label[c]), (1,))]
        ].squeeze(0)
        return pick(c1), pick(c1), pick(c2)


class HardNet(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(512, dim),
        )

    def forward(self, x):
        return F.normalize(self.features(x), dim=1)


def collection(x, y, digits):
    """The digits of one collection, numbered from nought."""
    keep = torch.isin(y, torch.tensor(digits))
    return x[keep], y[keep] - min(digits)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x / 16, dtype=torch.float).view(-1, 1, 8, 8), torch.tensor(y)
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    first = collection(x[:1000], y[:1000], [0, 1, 2, 3, 4])
    second = collection(x[:1000], y[:1000], [5, 6, 7, 8, 9])
    loader = torch.utils.data.DataLoader(TotalDatasetsLoader([first, second], 2560), batch_size=64)
    model = HardNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        losses = []
        for anchor, positive, negative in loader:
            loss = F.triplet_margin_loss(
                model(anchor), model(positive), model(negative), margin=0.8
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"Train Epoch: {epoch} Loss: {sum(losses) / len(losses):.4f}")
    with torch.no_grad():
        emb = model(x[1000:])
    far = torch.cdist(emb, emb).fill_diagonal_(float("inf"))
    print("metric:", (y[1000:][far.argmin(1)] == y[1000:]).float().mean().item())


if __name__ == "__main__":
    main()
